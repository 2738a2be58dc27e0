package revocation_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/revocation"
)

// model is a log with a naive reader: it remembers every entry that a successful reading has ever seen.
type model struct {
	env  *env
	now  time.Time
	next int64
	seen []revocation.Entry
	// distinct makes no entry equal to another, for nobody could tell a restored log from such.
	distinct time.Duration
}

// TestList_Model compares a list with the naive reader while the log is appended to, restored, tidied up and out of order.
func TestList_Model(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{now: start()}
		m.env = newEnv(t, func(o *revocation.Options) { o.Now = func() time.Time { return m.now } })
		m.env.journal.most = rapid.IntRange(2, 5).Draw(rt, "entries per page")
		rt.Repeat(map[string]func(*rapid.T){
			"append":  m.append,
			"restore": m.restore,
			"tidy":    m.tidy,
			"wait": func(rt *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(rt, "seconds")) * time.Second)
			},
			"fail": func(*rapid.T) { m.env.journal.err = errors.New("down") },
			"read": m.read,
			"":     m.check,
		})
	})
}

func (m *model) append(rt *rapid.T) {
	m.next++
	m.distinct++
	m.env.journal.entries = append(m.env.journal.entries, revocation.Entry{
		Seq: m.next, Issuer: rapid.SampledFrom([]string{issuer, other}).Draw(rt, "issuer"),
		Kind:         rapid.SampledFrom([]string{revocation.KindToken, revocation.KindSubject}).Draw(rt, "kind"),
		Value:        strconv.Itoa(rapid.IntRange(0, 3).Draw(rt, "value")),
		IssuedBefore: m.now.Add(m.distinct - time.Duration(rapid.IntRange(0, 5).Draw(rt, "age"))*time.Second),
		Until:        m.now.Add(time.Duration(rapid.IntRange(0, 60).Draw(rt, "until")) * time.Second),
	})
}

// restore puts an older state of the log in its place; numbers go on from there.
func (m *model) restore(rt *rapid.T) {
	j := m.env.journal
	keep := rapid.IntRange(0, len(j.entries)).Draw(rt, "kept")
	j.entries = append([]revocation.Entry(nil), j.entries[:keep]...)
	m.next = 0
	if keep > 0 {
		m.next = j.entries[keep-1].Seq
	}
}

// tidy forgets what has expired.
func (m *model) tidy(*rapid.T) {
	var kept []revocation.Entry
	for _, e := range m.env.journal.entries {
		if !e.Until.Before(m.now) {
			kept = append(kept, e)
		}
	}
	m.env.journal.entries = kept
}

func (m *model) read(*rapid.T) {
	failing := m.env.journal.err != nil
	err := m.env.Load(context.Background())
	m.env.journal.err = nil
	if failing != (err != nil) {
		m.env.closer.calls = -1 // reported by check
	}
	if !failing {
		m.seen = append(m.seen, m.env.journal.entries...)
	}
}

// check asks about every value: whatever a reading has seen is in force until it has expired, and nothing else is.
func (m *model) check(rt *rapid.T) {
	if m.env.closer.calls < 0 {
		rt.Fatal("Load does not report what the source does")
	}
	for _, from := range []string{issuer, other} {
		for value := range 4 {
			for _, kind := range []string{revocation.KindToken, revocation.KindSubject} {
				m.compare(rt, from, kind, strconv.Itoa(value))
			}
		}
	}
}

func (m *model) compare(rt *rapid.T, from, kind, value string) {
	token := revocation.Token{Issuer: from, IssuedAt: start()}
	if kind == revocation.KindToken {
		token.ID = value
	} else {
		token.Subject = value
	}
	must, may := false, false
	for _, e := range m.seen {
		if e.Issuer == from && e.Kind == kind && e.Value == value && !token.IssuedAt.After(e.IssuedBefore) {
			may = true
			must = must || !e.Until.Before(m.now)
		}
	}
	if got := m.env.Revoked(token); got && !may || !got && must {
		rt.Fatalf("Revoked(%s %s of %s) = %v, want %v", kind, value, from, got, must)
	}
}
