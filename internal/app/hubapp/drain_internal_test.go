package hubapp

import (
	"context"
	"strings"
	"testing"
)

// A disk that hangs must not keep readers on a hub that has no news for them any more.
func TestEngine_drainEndsStreamsWhenTheHistoryDoesNotClose(t *testing.T) {
	s := serve(t)
	rest := s.stream(t, "")
	repaired := make(chan struct{})
	closeStores := s.engine.closeStores
	s.engine.closeStores = func() error { <-repaired; return closeStores() }
	done := make(chan error, 1)
	go func() { done <- s.engine.Drain(context.Background()) }()
	rest()
	if err := <-done; err != nil {
		t.Errorf("Drain = %v", err)
	}
	if text := s.log.String(); !strings.Contains(text, "does not close in time") {
		t.Errorf("the log does not tell:\n%s", text)
	}
	close(repaired)
}
