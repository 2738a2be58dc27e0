package hub

import (
	"bytes"
	"io"
	"net/http/httputil"
	"testing"

	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

func TestFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 1, 5000)).Draw(t, "events")
		entries := make([]history.Entry, len(events))
		for i, e := range events {
			entries[i] = history.Entry{Position: history.Position(i + 1), Record: history.Record{Event: e}}
		}
		var wire []byte
		for i, f := range pageFrames(entries) {
			if got := f.bytes(Raw); !bytes.Equal(got, events[i]) {
				t.Fatalf("raw bytes = %q, want %q", got, events[i])
			}
			if alone := newFrame(f.pos, events[i]); !bytes.Equal(alone.chunk, f.chunk) || alone.head != f.head {
				t.Fatalf("frame of a page = %q, want %q", f.chunk, alone.chunk)
			}
			wire = append(wire, f.bytes(Chunked)...)
		}
		got, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(append(wire, "0\r\n\r\n"...))))
		if err != nil || !bytes.Equal(got, bytes.Join(events, nil)) {
			t.Fatalf("dechunked = %q, %v", got, err)
		}
	})
}
