package hub

import (
	"encoding/binary"
	"slices"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// registry knows which shards have use for which matcher. Routing matchers and grant matchers are interned in one
// index, so that a single look-up per entry answers who listens and who may read. It belongs to the dispatcher's
// goroutine.
type registry struct {
	index     *topic.Index
	interests []interest // by matcher
	sets      table[string, *grantSet]
	key       []byte
}

// shardSet is a set of shards, a bit for each.
type shardSet uint64

func (s *shardSet) assign(shard int, in bool) {
	if in {
		*s |= 1 << shard
	} else {
		*s &^= 1 << shard
	}
}

// interest is which shards have subscribers that route by a matcher, and which have some that may read by it.
type interest struct {
	routes, readers shardSet
	uses            []use
}

// use counts what one shard does with a matcher: its subscribers that route by it, and its grant sets that contain it.
type use struct {
	shard           int
	routes, readers int
}

// grantSet is a distinct set of grant matchers. Tokens with equal grants share one, and who may read a private entry
// is decided once for all of them.
type grantSet struct {
	ids []topic.MatcherID // sorted
	key string
	// subscribers counts those of each shard; total is their sum. The dispatcher's.
	subscribers map[int]int
	total       int
}

func newRegistry() *registry {
	return &registry{index: topic.NewIndex(), sets: newTable[string, *grantSet]()}
}

// registration is what a subscriber has in the registry.
type registration struct {
	routes []topic.MatcherID // sorted and distinct
	grants *grantSet         // nil: reads public entries only
	at     history.Position  // entries after it reach the shard
}

// add registers a subscriber of the shard.
func (r *registry) add(shard int, matchers []*topic.Matcher, grants *rar.Grants) registration {
	reg := registration{routes: make([]topic.MatcherID, 0, len(matchers))}
	wildcard := false
	for _, m := range matchers {
		if m.Wildcard() && wildcard {
			continue // of another type: the index knows one
		}
		wildcard = wildcard || m.Wildcard()
		reg.routes = append(reg.routes, r.index.Intern(m))
	}
	slices.Sort(reg.routes)
	for _, id := range reg.routes {
		r.change(id, shard, 1, 0)
	}
	reg.grants = r.addGrants(shard, grants.Matchers(rar.Subscribe))
	return reg
}

// remove takes a registration of the shard back.
func (r *registry) remove(shard int, reg registration) {
	for _, id := range reg.routes {
		r.change(id, shard, -1, 0)
		r.index.Release(id)
	}
	if reg.grants != nil {
		r.removeGrants(shard, reg.grants)
	}
}

func (r *registry) addGrants(shard int, matchers []*topic.Matcher) *grantSet {
	if len(matchers) == 0 {
		return nil
	}
	ids := make([]topic.MatcherID, 0, len(matchers))
	for _, m := range matchers {
		ids = append(ids, r.index.Intern(m))
	}
	slices.Sort(ids)
	r.key = r.key[:0]
	for _, id := range ids {
		r.key = binary.BigEndian.AppendUint32(r.key, uint32(id))
	}
	set := r.sets.m[string(r.key)]
	if set == nil {
		set = &grantSet{ids: ids, key: string(r.key), subscribers: map[int]int{}}
		r.sets.set(set.key, set)
	} else {
		// The set holds a reference to each of its matchers already.
		for _, id := range ids {
			r.index.Release(id)
		}
	}
	set.total++
	set.subscribers[shard]++
	if set.subscribers[shard] == 1 {
		for _, id := range set.ids {
			r.change(id, shard, 0, 1)
		}
	}
	return set
}

func (r *registry) removeGrants(shard int, set *grantSet) {
	set.total--
	set.subscribers[shard]--
	if set.subscribers[shard] == 0 {
		delete(set.subscribers, shard)
		for _, id := range set.ids {
			r.change(id, shard, 0, -1)
		}
	}
	if set.total > 0 {
		return
	}
	r.sets.remove(set.key)
	for _, id := range set.ids {
		r.index.Release(id)
	}
}

// change adds to what a shard does with a matcher.
func (r *registry) change(id topic.MatcherID, shard, routes, readers int) {
	for int(id) >= len(r.interests) {
		r.interests = append(r.interests, interest{})
	}
	in := &r.interests[id]
	i := slices.IndexFunc(in.uses, func(u use) bool { return u.shard == shard })
	if i < 0 {
		i = len(in.uses)
		in.uses = append(in.uses, use{shard: shard})
	}
	u := &in.uses[i]
	u.routes += routes
	u.readers += readers
	in.routes.assign(shard, u.routes > 0)
	in.readers.assign(shard, u.readers > 0)
	if u.routes == 0 && u.readers == 0 {
		in.uses = slices.Delete(in.uses, i, i+1)
		if len(in.uses) == 0 {
			in.uses = nil
		}
	}
}

// match appends the matchers that select one of topics to dst, sorted, and returns the shards that have readers
// for the entry.
func (r *registry) match(dst []topic.MatcherID, topics []*topic.Topic, private bool) ([]topic.MatcherID, shardSet) {
	dst = r.index.Match(dst, topics)
	var routes, readers shardSet
	for _, id := range dst {
		routes |= r.interests[id].routes
		readers |= r.interests[id].readers
	}
	if private {
		return dst, routes & readers
	}
	return dst, routes
}
