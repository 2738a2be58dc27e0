package app

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// maxInMemoryResponse bounds a response of the authorization server to the broker.
const maxInMemoryResponse = 1 << 20

// InMemory serves the requests of the session broker from the handler of the same process. The broker still speaks HTTP with its
// authorization server, so that one apart works the same. Handler is set before the first request.
type InMemory struct {
	// Origin is the only one that is served, scheme://host[:port].
	Origin  string
	Handler http.Handler
}

// RoundTrip implements http.RoundTripper.
func (t *InMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme+"://"+r.URL.Host != t.Origin {
		return nil, fmt.Errorf("app: the broker has no business with %s", r.URL.Host)
	}
	in := r.Clone(r.Context())
	in.RequestURI = r.URL.RequestURI()
	in.Host = r.URL.Host
	in.RemoteAddr = "127.0.0.1:0"
	if in.Body == nil {
		in.Body = http.NoBody
	}
	defer func() { _ = in.Body.Close() }()
	w := &bufferedResponse{header: http.Header{}, status: http.StatusOK}
	t.Handler.ServeHTTP(w, in)
	if w.body.Len() > maxInMemoryResponse {
		return nil, fmt.Errorf("app: response to the broker exceeds %d bytes", maxInMemoryResponse)
	}
	return &http.Response{
		Status:     strconv.Itoa(w.status) + " " + http.StatusText(w.status),
		StatusCode: w.status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        w.header,
		Body:          io.NopCloser(&w.body),
		ContentLength: int64(w.body.Len()),
		Request:       r,
	}, nil
}

// bufferedResponse is a ResponseWriter that keeps the response.
type bufferedResponse struct {
	header  http.Header
	body    bytes.Buffer
	status  int
	started bool
}

// Header implements http.ResponseWriter.
func (w *bufferedResponse) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *bufferedResponse) WriteHeader(status int) {
	if !w.started {
		w.status, w.started = status, true
	}
}

// Write implements http.ResponseWriter.
func (w *bufferedResponse) Write(p []byte) (int, error) {
	w.started = true
	if w.body.Len() > maxInMemoryResponse {
		return len(p), nil // the excess is reported once, by RoundTrip
	}
	return w.body.Write(p)
}
