package httpserver

import (
	"net/http"
	"sync/atomic"
)

// Swap is a handler that can be replaced while it serves: requests under way end with the handler they began with. It is safe for
// concurrent use.
type Swap struct {
	current atomic.Pointer[http.Handler]
}

// NewSwap serves with h until Replace.
func NewSwap(h http.Handler) *Swap {
	s := &Swap{}
	s.Replace(h)
	return s
}

// Replace has requests that come from now on served by h.
func (s *Swap) Replace(h http.Handler) { s.current.Store(&h) }

// ServeHTTP implements http.Handler.
func (s *Swap) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*s.current.Load()).ServeHTTP(w, r) }
