package httpserver_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
)

func TestSwap_requestsUnderWayKeepTheirHandler(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	s := httpserver.NewSwap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-goOn
		w.WriteHeader(http.StatusTeapot)
	}))
	serve := func() int {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
		return w.Code
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if code := serve(); code != http.StatusTeapot {
			t.Errorf("the request under way was answered %d, want that of the first handler", code)
		}
	})
	<-begun
	s.Replace(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }))
	if code := serve(); code != http.StatusAccepted {
		t.Errorf("a request after Replace was answered %d, want that of the second handler", code)
	}
	close(goOn)
	wg.Wait()
}
