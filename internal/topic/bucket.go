package topic

import "strings"

// maxPrefixSegments is how many leading segments of a pathname tell buckets apart.
const maxPrefixSegments = 8

// site is what patterns say literally about protocol and hostname.
type site struct {
	protocol, hostname       string
	anyProtocol, anyHostname bool // not literal
}

// siteBucket holds the patterns of one site by what they say about the pathname. Lists are unordered.
type siteBucket struct {
	size    int
	literal compactMap[string, []MatcherID] // the whole pathname
	prefix  compactMap[string, []MatcherID] // leading segments, up to and including a slash
	depths  [maxPrefixSegments + 1]int      // number of patterns by the number of slashes in the prefix
}

// place says where a pattern stands in the index.
type place struct {
	site    site
	literal bool
	path    string // the literal pathname, or its leading segments
	depth   int
}

func placeOf(u *urlPattern) place {
	var at place
	protocol, hostname := &u.programs[protocolComponent], &u.programs[hostnameComponent]
	if protocol.kind == literalProgram {
		at.site.protocol = protocol.literal
	} else {
		at.site.anyProtocol = true
	}
	if hostname.kind == literalProgram {
		at.site.hostname = hostname.literal
	} else {
		at.site.anyHostname = true
	}
	path := u.programs[pathnameComponent].literal
	if u.programs[pathnameComponent].kind == literalProgram {
		at.literal, at.path = true, path
		return at
	}
	end := 0
	for at.depth < maxPrefixSegments {
		n := strings.IndexByte(path[end:], '/')
		if n < 0 {
			break
		}
		end += n + 1
		at.depth++
	}
	at.path = path[:end]
	return at
}

func (b *siteBucket) lists(at place) *compactMap[string, []MatcherID] {
	if at.literal {
		return &b.literal
	}
	return &b.prefix
}

func (x *Index) addPattern(id MatcherID, u *urlPattern) {
	at := placeOf(u)
	b, ok := x.sites.get(at.site)
	if !ok {
		b = &siteBucket{}
		x.sites.set(at.site, b)
	}
	lists := b.lists(at)
	ids, _ := lists.get(at.path)
	x.slots[id].place = len(ids)
	lists.set(at.path, append(ids, id))
	b.size++
	if !at.literal {
		b.depths[at.depth]++
	}
}

func (x *Index) removePattern(id MatcherID, u *urlPattern) {
	at := placeOf(u)
	b, _ := x.sites.get(at.site)
	b.size--
	if b.size == 0 {
		x.sites.remove(at.site)
		return
	}
	if !at.literal {
		b.depths[at.depth]--
	}
	lists := b.lists(at)
	ids, _ := lists.get(at.path)
	last := len(ids) - 1
	if last == 0 {
		lists.remove(at.path)
		return
	}
	moved := ids[last]
	ids[x.slots[id].place] = moved
	x.slots[moved].place = x.slots[id].place
	ids = ids[:last]
	if cap(ids) >= compactFrom && len(ids) <= cap(ids)/4 {
		ids = append([]MatcherID(nil), ids...)
	}
	lists.set(at.path, ids)
}

// matchPatterns appends the patterns that match t to dst, in no particular order.
func (x *Index) matchPatterns(dst []MatcherID, t *Topic) []MatcherID {
	t.parse()
	if !t.valid {
		return dst
	}
	protocol, hostname := t.components[protocolComponent], t.components[hostnameComponent]
	for _, s := range [...]site{
		{protocol: protocol, hostname: hostname},
		{anyProtocol: true, hostname: hostname},
		{protocol: protocol, anyHostname: true},
		{anyProtocol: true, anyHostname: true},
	} {
		if b, ok := x.sites.get(s); ok {
			dst = x.matchBucket(dst, b, t)
		}
	}
	return dst
}

func (x *Index) matchBucket(dst []MatcherID, b *siteBucket, t *Topic) []MatcherID {
	path := t.components[pathnameComponent]
	if ids, ok := b.literal.get(path); ok {
		dst = x.matchList(dst, ids, t)
	}
	end := 0
	for depth := range b.depths {
		if b.depths[depth] > 0 {
			if ids, ok := b.prefix.get(path[:end]); ok {
				dst = x.matchList(dst, ids, t)
			}
		}
		n := strings.IndexByte(path[end:], '/')
		if n < 0 {
			break
		}
		end += n + 1
	}
	return dst
}

func (x *Index) matchList(dst, ids []MatcherID, t *Topic) []MatcherID {
	for _, id := range ids {
		if x.slots[id].matcher.url.match(&t.components) {
			dst = append(dst, id)
		}
	}
	return dst
}
