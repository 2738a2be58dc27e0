package as

import (
	"context"
	"fmt"
	"sync"
)

// origins knows which origins' pages may call the endpoints for clients (token, par and revoke): those of the clients' redirect
// URIs, and those the clients list. It is read again when the store's version has changed. Safe for concurrent use.
type origins struct {
	mu      sync.Mutex
	loaded  bool
	version int64
	allowed map[string]struct{}
}

// OriginAllowed says whether pages of an origin may read answers of the endpoints for clients. A preflight does not say for
// which client it is, so the origin of any enabled client will do; the answers depend on no cookie.
func (s *Server) OriginAllowed(ctx context.Context, origin string) (bool, error) {
	version, err := s.store.Version(ctx)
	if err != nil {
		return false, fmt.Errorf("read store version: %w", err)
	}
	s.origins.mu.Lock()
	defer s.origins.mu.Unlock()
	if !s.origins.loaded || s.origins.version != version {
		if err := s.origins.load(ctx, s); err != nil {
			return false, err
		}
		s.origins.version, s.origins.loaded = version, true
	}
	_, ok := s.origins.allowed[origin]
	return ok, nil
}

func (o *origins) load(ctx context.Context, s *Server) error {
	clients, err := s.store.ListClients(ctx)
	if err != nil {
		return fmt.Errorf("list clients: %w", err)
	}
	o.allowed = map[string]struct{}{}
	for _, c := range clients {
		if c.Disabled {
			continue
		}
		for _, uri := range c.RedirectURIs {
			if origin, ok := originOf(uri); ok {
				o.allowed[origin] = struct{}{}
			}
		}
		for _, origin := range c.Origins {
			o.allowed[origin] = struct{}{}
		}
	}
	return nil
}
