package token

import (
	"crypto/sha256"
	"sync"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// cacheKey stands for a token at an endpoint. The hash keeps tokens themselves out of memory.
type cacheKey struct {
	sum      [sha256.Size]byte
	endpoint rar.Action
}

// cacheEntry is a member of the cache's ring, which is ordered by use.
type cacheEntry struct {
	key          cacheKey
	claims       *Claims
	version      uint64 // of the issuer's keys when the signature was checked
	newer, older *cacheEntry
}

// cache remembers accepted tokens, the least recently used of them forgotten first. It holds what was true once: the
// verifier asks again for everything that can change. Refusals are not remembered: strangers make them for free. A nil
// cache remembers nothing.
type cache struct {
	max int

	mu      sync.Mutex
	entries map[cacheKey]*cacheEntry
	ring    cacheEntry // ring.older is the most, ring.newer the least recently used entry
}

func newCache(size int) *cache {
	if size < 0 {
		return nil
	}
	c := &cache{max: size, entries: make(map[cacheKey]*cacheEntry)}
	c.ring.newer, c.ring.older = &c.ring, &c.ring
	return c
}

// key hashes the token, unless there is no cache or the token is too long to be accepted anyway.
func (c *cache) key(compact string, endpoint rar.Action, maxBytes int) (cacheKey, bool) {
	if c == nil || len(compact) > maxBytes {
		return cacheKey{}, false
	}
	return cacheKey{sum: sha256.Sum256([]byte(compact)), endpoint: endpoint}, true
}

func (c *cache) get(key cacheKey) (*Claims, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		return nil, 0
	}
	c.unlink(e)
	c.link(e)
	return e.claims, e.version
}

func (c *cache) put(key cacheKey, claims *Claims, version uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok {
		c.unlink(e)
	}
	e := &cacheEntry{key: key, claims: claims, version: version}
	c.entries[key] = e
	c.link(e)
	if len(c.entries) > c.max {
		oldest := c.ring.newer
		c.unlink(oldest)
		delete(c.entries, oldest.key)
	}
}

func (c *cache) drop(key cacheKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok {
		c.unlink(e)
		delete(c.entries, key)
	}
}

func (c *cache) link(e *cacheEntry) {
	e.newer, e.older = &c.ring, c.ring.older
	e.newer.older, e.older.newer = e, e
}

func (c *cache) unlink(e *cacheEntry) {
	e.newer.older, e.older.newer = e.older, e.newer
	e.newer, e.older = nil, nil
}
