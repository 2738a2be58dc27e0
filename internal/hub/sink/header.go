package sink

import (
	"bytes"
	"maps"
	"net/http"
	"time"
)

// merge puts the fields of header over those of base, which is changed, and removes what does not go with a stream.
func merge(base, header http.Header) {
	maps.Copy(base, header)
	for _, name := range []string{"Connection", "Content-Length", "Keep-Alive", "Trailer", "Transfer-Encoding", "Upgrade"} {
		base.Del(name)
	}
}

// headerBlock returns the head of a hijacked response: status 200, the fields of both headers, of which the second
// wins, and the framing, which is chunked and ends with the connection.
func headerBlock(base, header http.Header) []byte {
	all := base.Clone()
	if all == nil {
		all = http.Header{}
	}
	merge(all, header)
	all.Set("Connection", "close")
	all.Set("Transfer-Encoding", "chunked")
	if all.Get("Date") == "" {
		all.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 200 OK\r\n")
	_ = all.Write(&b) // a bytes.Buffer takes everything; line ends within values become spaces
	b.WriteString("\r\n")
	return b.Bytes()
}

// writeHeader sends the head of a response that the HTTP server frames.
func writeHeader(w http.ResponseWriter, header http.Header) {
	merge(w.Header(), header)
	w.WriteHeader(http.StatusOK)
}
