package revocation

import (
	"container/heap"
	"maps"
	"time"
)

// kind is a known kind of entry.
type kind uint8

const (
	byToken kind = iota
	byGrant
	bySession
	bySubject
	byClient
	kinds
)

// kindOf returns the kind of that name, and false for an unknown one.
func kindOf(name string) (kind, bool) {
	switch name {
	case KindToken:
		return byToken, true
	case KindGrant:
		return byGrant, true
	case KindSession:
		return bySession, true
	case KindSubject:
		return bySubject, true
	case KindClient:
		return byClient, true
	}
	return 0, false
}

// mark is what revokes the tokens of one issuer with one value.
type mark struct {
	issuedBefore, until time.Time
}

// markKey finds a mark.
type markKey struct {
	issuer string
	kind   kind
	value  string
}

// index finds entries by issuer, kind and value. The zero value is empty. It is not safe for concurrent use.
type index struct {
	issuers map[string]*issuerMarks
	marks   int // in all tables
	due     dueHeap
}

// issuerMarks is the marks of one issuer.
type issuerMarks [kinds]markTable

// add puts an entry in and tells whether it says anything new. Two entries for the same value become one that revokes what
// either does, for as long as either does.
func (x *index) add(e *Entry, k kind) bool {
	marks := x.issuers[e.Issuer]
	if marks == nil {
		if x.issuers == nil {
			x.issuers = make(map[string]*issuerMarks)
		}
		marks = &issuerMarks{}
		x.issuers[e.Issuer] = marks
	}
	old, found := marks[k].m[e.Value]
	m := mark{issuedBefore: e.IssuedBefore, until: e.Until}
	if found {
		m.issuedBefore, m.until = later(old.issuedBefore, m.issuedBefore), later(old.until, m.until)
		if m == old {
			return false
		}
	}
	marks[k].set(e.Value, m)
	if !found {
		x.marks++
	}
	if !found || m.until.After(old.until) {
		heap.Push(&x.due, due{at: m.until, key: markKey{e.Issuer, k, e.Value}})
	}
	return true
}

// later returns the later of two times, the first if they are equal.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// forget removes marks whose time has passed, n at the most. It returns the time of the last of those, and tells whether there are more.
func (x *index) forget(now time.Time, n int) (last time.Time, more bool) {
	for ; len(x.due) > 0 && x.due[0].at.Before(now); n-- {
		if n == 0 {
			return last, true
		}
		d := x.due[0]
		last = d.at
		heap.Pop(&x.due)
		marks := x.issuers[d.key.issuer]
		if marks == nil {
			continue
		}
		table := &marks[d.key.kind]
		if m, ok := table.m[d.key.value]; ok && m.until.Before(now) {
			table.remove(d.key.value)
			x.marks--
		}
		if marks.empty() {
			delete(x.issuers, d.key.issuer)
		}
	}
	return last, false
}

// size is the number of marks.
func (x *index) size() int { return x.marks }

// held is the number of marks and of their extensions that are not over; it is what memory is bounded by.
func (x *index) held() int { return len(x.due) }

// revoked tells whether an entry revokes t.
func (x *index) revoked(t *Token) bool {
	m := x.issuers[t.Issuer]
	if m == nil {
		return false
	}
	return m.hit(byToken, t.ID, t) || m.hit(byGrant, t.GrantID, t) || m.hit(bySession, t.SessionID, t) ||
		m.hit(bySubject, t.Subject, t) || m.hit(byClient, t.ClientID, t)
}

func (m *issuerMarks) hit(k kind, value string, t *Token) bool {
	if value == "" || len(m[k].m) == 0 {
		return false
	}
	e, ok := m[k].m[value]
	return ok && !t.IssuedAt.After(e.issuedBefore)
}

func (m *issuerMarks) empty() bool {
	for k := range m {
		if len(m[k].m) > 0 {
			return false
		}
	}
	return true
}

// tableMin is the size below which a table is not rebuilt.
const tableMin = 1024

// markTable is a map that gives its memory back, which Go's maps do not: one that has shrunk to a quarter is rebuilt.
type markTable struct {
	m    map[string]mark
	peak int
}

func (t *markTable) set(value string, m mark) {
	if t.m == nil {
		t.m = make(map[string]mark)
	}
	t.m[value] = m
	t.peak = max(t.peak, len(t.m))
}

func (t *markTable) remove(value string) {
	delete(t.m, value)
	if t.peak < tableMin || len(t.m) >= t.peak/4 {
		return
	}
	rebuilt := make(map[string]mark, len(t.m))
	maps.Copy(rebuilt, t.m)
	t.m, t.peak = rebuilt, len(rebuilt)
}

// due is when a mark can be forgotten, unless it has been extended meanwhile.
type due struct {
	at  time.Time
	key markKey
}

// dueHeap is a heap.Interface with the earliest first.
type dueHeap []due

// Len implements heap.Interface.
func (h *dueHeap) Len() int { return len(*h) }

// Less implements heap.Interface.
func (h *dueHeap) Less(i, j int) bool { return (*h)[i].at.Before((*h)[j].at) }

// Swap implements heap.Interface.
func (h *dueHeap) Swap(i, j int) { (*h)[i], (*h)[j] = (*h)[j], (*h)[i] }

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) {
	if d, ok := x.(due); ok {
		*h = append(*h, d)
	}
}

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = due{}
	*h = (*h)[:last]
	if cap(*h) >= 2*tableMin && last < cap(*h)/4 {
		*h = append(make(dueHeap, 0, last*2), *h...)
	}
	return d
}
