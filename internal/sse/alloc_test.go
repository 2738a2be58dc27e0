package sse_test

import (
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/sse"
)

func TestAppendEvent_doesNotAllocate(t *testing.T) {
	e := sse.Event{ID: "urn:uuid:00000000-0000-4000-8000-000000000000", Type: "type", Data: strings.Repeat("a line\n", 50)}
	buf := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { buf = sse.AppendEvent(buf[:0], e) }); n != 0 {
		t.Errorf("AppendEvent allocates %v times into a buffer that is large enough, want 0", n)
	}
}
