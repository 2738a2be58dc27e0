package sink

import (
	"bytes"
	"maps"
	"net/http"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
)

// merge puts the fields of header over those of base, which is changed, and removes what does not go with a stream.
func merge(base, header http.Header) {
	maps.Copy(base, header)
	for _, name := range []string{"Connection", "Content-Length", "Keep-Alive", "Trailer", "Transfer-Encoding", "Upgrade"} {
		base.Del(name)
	}
}

// usualHead is about what the head of a response and the first bytes of its stream take.
const usualHead = 640

// headerBlock returns the head of a hijacked response: status 200, the fields of both headers, of which the second
// wins, and the framing, which ends with the connection and is chunked for HTTP/1.1: HTTP/1.0 knows no chunks. It changes base, which
// nobody else has any more.
func headerBlock(base, header http.Header, framing hub.Framing) []byte {
	merge(base, header)
	base.Set("Connection", "close")
	version := "HTTP/1.0"
	if framing == hub.Chunked {
		version = "HTTP/1.1"
		base.Set("Transfer-Encoding", "chunked")
	}
	if base.Get("Date") == "" {
		base.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	b := bytes.NewBuffer(make([]byte, 0, usualHead))
	b.WriteString(version + " 200 OK\r\n")
	_ = base.Write(b) // a bytes.Buffer takes everything; line ends within values become spaces
	b.WriteString("\r\n")
	return b.Bytes()
}

// writeHeader sends the head of a response that the HTTP server frames.
func writeHeader(w http.ResponseWriter, header http.Header) {
	merge(w.Header(), header)
	w.WriteHeader(http.StatusOK)
}
