package revocation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/revocation"
)

func TestList_Revoked(t *testing.T) {
	t.Parallel()
	at := start()
	e := newEnv(t, nil)
	for kind, value := range map[string]string{
		revocation.KindToken: "t1", revocation.KindGrant: "g1", revocation.KindSession: "s1",
		revocation.KindSubject: "u1", revocation.KindClient: "c1", "tenant": "x1",
	} {
		e.journal.append(revocation.Entry{Issuer: issuer, Kind: kind, Value: value, IssuedBefore: at, Until: at.Add(time.Hour)})
	}
	e.load(t)
	valid := revocation.Token{Issuer: issuer, ID: "t2", GrantID: "g2", SessionID: "s2", Subject: "u2", ClientID: "c2", IssuedAt: at}
	with := func(change func(*revocation.Token)) revocation.Token {
		token := valid
		change(&token)
		return token
	}
	for name, c := range map[string]struct {
		token revocation.Token
		want  bool
	}{
		"another":                   {valid, false},
		"its jti":                   {with(func(t *revocation.Token) { t.ID = "t1" }), true},
		"its grant":                 {with(func(t *revocation.Token) { t.GrantID = "g1" }), true},
		"its session":               {with(func(t *revocation.Token) { t.SessionID = "s1" }), true},
		"its subject":               {with(func(t *revocation.Token) { t.Subject = "u1" }), true},
		"its client":                {with(func(t *revocation.Token) { t.ClientID = "c1" }), true},
		"another issuer's":          {with(func(t *revocation.Token) { t.ID, t.Issuer = "t1", other }), false},
		"a value of another kind":   {with(func(t *revocation.Token) { t.ID, t.Subject = "u1", "t1" }), false},
		"a value of unknown kind":   {with(func(t *revocation.Token) { t.ID, t.Subject = "x1", "x1" }), false},
		"issued a moment later":     {with(func(t *revocation.Token) { t.ID, t.IssuedAt = "t1", at.Add(time.Nanosecond) }), false},
		"issued long before":        {with(func(t *revocation.Token) { t.ID, t.IssuedAt = "t1", at.Add(-time.Hour) }), true},
		"issued at an unknown time": {with(func(t *revocation.Token) { t.ID, t.IssuedAt = "t1", time.Time{} }), true},
		"without claims":            {revocation.Token{Issuer: issuer}, false},
		"of nobody":                 {revocation.Token{}, false},
	} {
		if got := e.Revoked(c.token); got != c.want {
			t.Errorf("Revoked(a token, %s) = %v, want %v", name, got, c.want)
		}
	}
	if n := e.logged("ERROR", "not understood"); n != 1 {
		t.Errorf("an entry of an unknown kind is logged %d times, want once", n)
	}
}

func TestList_EntriesForOneValueAddUp(t *testing.T) {
	t.Parallel()
	at, now := start(), start()
	e := newEnv(t, func(o *revocation.Options) { o.Now = func() time.Time { return now } })
	add := func(before, until time.Duration) {
		e.journal.append(revocation.Entry{
			Issuer: issuer, Kind: revocation.KindSubject, Value: "u1", IssuedBefore: at.Add(before), Until: at.Add(until),
		})
		e.load(t)
	}
	issued := func(after time.Duration) bool {
		return e.Revoked(revocation.Token{Issuer: issuer, Subject: "u1", IssuedAt: at.Add(after)})
	}
	add(10*time.Second, time.Hour)
	add(5*time.Second, time.Minute) // says nothing new
	if !issued(10*time.Second) || issued(11*time.Second) {
		t.Error("a weaker entry changes what a stronger one revokes")
	}
	calls, _ := e.closer.state()
	if calls != 1 {
		t.Errorf("Close was called %d times, want once: the second entry says nothing new", calls)
	}
	add(20*time.Second, time.Minute)
	if !issued(20 * time.Second) {
		t.Error("a stronger entry changes nothing")
	}
	now = at.Add(2 * time.Minute)
	add(0, 3*time.Minute) // another reading forgets nothing
	if !issued(20*time.Second) || e.counts.get().known == 0 {
		t.Error("the entry that lasts longest is forgotten")
	}
}

func TestList_ClosesStreams(t *testing.T) {
	t.Parallel()
	e := newEnv(t, nil)
	e.closer.open = []revocation.Token{tokenWith("a"), tokenWith("b"), tokenWith("c")}
	inForce := 0
	e.List = newEnv(t, func(o *revocation.Options) {
		o.Source, o.Metrics = e.journal, e.counts
		o.Close = func(match func(revocation.Token) bool) int {
			// By now the list must refuse what is about to be closed.
			for _, id := range []string{"a", "c"} {
				if e.revoked(id) && match(tokenWith(id)) {
					inForce++
				}
			}
			return e.closer.close(match)
		}
	}).List
	e.journal.add("a", "x", "c")
	e.load(t)
	calls, closed := e.closer.state()
	if calls != 1 || !slices.Equal(closed, []string{"a", "c"}) || inForce != 2 {
		t.Errorf("Close was called %d times and closed %v, %d of them in force; want once, a and c, 2", calls, closed, inForce)
	}
	e.load(t)
	if calls, _ := e.closer.state(); calls != 1 {
		t.Errorf("Close was called for nothing")
	}
	if got := e.counts.get(); got.revoked != 2 || got.known != 3 || got.applied != 3 || !got.read.Equal(start()) || got.source != "the log" {
		t.Errorf("counted = %+v", &got)
	}
}

// TestList_ClosesOncePerBatch shows that revoking many tokens at once does not go through the streams once for each.
func TestList_ClosesOncePerBatch(t *testing.T) {
	t.Parallel()
	e := newEnv(t, nil)
	for i := range 5000 {
		e.journal.add(strconv.Itoa(i))
	}
	e.closer.open = []revocation.Token{tokenWith("0"), tokenWith("4999"), tokenWith("5000")}
	e.load(t)
	if calls, closed := e.closer.state(); calls > 5 || !slices.Equal(closed, []string{"0", "4999"}) {
		t.Errorf("Close was called %d times and closed %v, want 5 times at most, and 0 and 4999", calls, closed)
	}
}

func TestList_LoadReadsThroughToTheEnd(t *testing.T) {
	t.Parallel()
	for _, most := range []int{0, 2, 7, 999} {
		t.Run(fmt.Sprintf("%d a page", most), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, nil)
			e.journal.most = most
			for i := range 2001 {
				e.journal.add(strconv.Itoa(i))
			}
			e.load(t)
			e.want(t, map[string]bool{"0": true, "1000": true, "2000": true, "2001": false})
		})
	}
}

func TestList_LoadFails(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	e := newEnv(t, nil)
	e.journal.err = down
	if err := e.Load(t.Context()); !errors.Is(err, down) {
		t.Errorf("Load = %v, want %v", err, down)
	}
	if !e.counts.get().read.IsZero() {
		t.Error("a failed reading counts as one")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	list := newEnv(t, func(o *revocation.Options) {
		o.Source = sourceFunc(func(ctx context.Context) ([]revocation.Entry, error) { return nil, ctx.Err() })
	})
	if err := list.Load(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Load = %v, want %v", err, context.Canceled)
	}
}

// sourceFunc answers every question alike.
type sourceFunc func(context.Context) ([]revocation.Entry, error)

func (f sourceFunc) Since(ctx context.Context, _ int64, _ int) ([]revocation.Entry, error) {
	return f(ctx)
}

func TestList_RefusesWhatIsNoLog(t *testing.T) {
	t.Parallel()
	entry := func(seq int64) revocation.Entry {
		return revocation.Entry{Seq: seq, Issuer: issuer, Kind: revocation.KindToken, Value: strconv.FormatInt(seq, 10), IssuedBefore: start(), Until: start().Add(time.Hour)}
	}
	for name, page := range map[string][]revocation.Entry{
		"an entry twice":       {entry(1), entry(1)},
		"entries out of order": {entry(2), entry(1)},
		"an entry numbered 0":  {entry(0)},
		"a negative number":    {entry(-1)},
	} {
		e := newEnv(t, func(o *revocation.Options) {
			o.Source = sourceFunc(func(context.Context) ([]revocation.Entry, error) { return page, nil })
		})
		if err := e.Load(t.Context()); !errors.Is(err, revocation.ErrSource) {
			t.Errorf("Load of %s = %v, want %v", name, err, revocation.ErrSource)
		}
	}
	// A source that gives the same page whatever it is asked must not be read for ever.
	e := newEnv(t, func(o *revocation.Options) {
		o.Source = sourceFunc(func(context.Context) ([]revocation.Entry, error) { return []revocation.Entry{entry(1)}, nil })
	})
	if err := e.Load(t.Context()); !errors.Is(err, revocation.ErrSource) {
		t.Errorf("Load of the same page again = %v, want %v", err, revocation.ErrSource)
	}
	e.want(t, map[string]bool{"1": true})
}

// A log that is not the one that was read so far is read from its beginning, and what is in force stays so.
func TestList_SourceIsReplaced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		replace func(*journal)
		want    map[string]bool
		warned  int
	}{
		"by a backup with less in it": {
			func(j *journal) { j.entries = j.entries[:2] }, map[string]bool{"a": true, "d": true}, 1,
		},
		"by a backup that was written to since": {
			func(j *journal) {
				j.entries = slices.Clone(j.entries[:2])
				for _, id := range []string{"x", "y", "z"} { // 3 to 5, the last one read was 4
					e := j.entries[0]
					e.Seq, e.Value = int64(len(j.entries)+1), id
					j.entries = append(j.entries, e)
				}
			}, map[string]bool{"a": true, "d": true, "x": true, "y": true, "z": true}, 1,
		},
		"by one that skips the last entry read": {
			func(j *journal) {
				e := j.entries[3]
				e.Seq, e.Value = 9, "x"
				j.entries = append(slices.Clone(j.entries[:3]), e)
			}, map[string]bool{"a": true, "d": true, "x": true}, 1,
		},
		"by one with another entry in its place": {
			func(j *journal) {
				j.entries = slices.Clone(j.entries)
				j.entries[3].IssuedBefore = start().Add(time.Second)
			}, map[string]bool{"a": true, "d": true}, 1,
		},
		"by an empty one":                 {func(j *journal) { j.entries = nil }, map[string]bool{"a": true, "d": true}, 1},
		"by itself":                       {func(j *journal) { j.entries = slices.Clone(j.entries) }, map[string]bool{"a": true, "d": true}, 0},
		"by the same with its first gone": {func(j *journal) { j.entries = j.entries[1:] }, map[string]bool{"a": true, "d": true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, nil)
			e.journal.add("a", "b", "c", "d")
			e.load(t)
			e.journal.change(c.replace)
			e.load(t)
			e.load(t)
			e.want(t, c.want)
			if n := e.logged("WARN", "read from its beginning"); n != c.warned {
				t.Errorf("warned %d times, want %d:\n%s", n, c.warned, e.log)
			}
			e.journal.add("later")
			e.load(t)
			e.want(t, map[string]bool{"later": true, "never": false})
		})
	}
}

// TestList_SourceIsTidiedUp shows that an authorization server may forget what has expired, the newest entries included.
func TestList_SourceIsTidiedUp(t *testing.T) {
	t.Parallel()
	now := start()
	e := newEnv(t, func(o *revocation.Options) { o.Now = func() time.Time { return now } })
	e.journal.add("a", "b")
	e.load(t)
	now = now.Add(2 * time.Hour)
	e.journal.change(func(j *journal) { j.entries = nil })
	e.load(t)
	e.journal.append(revocation.Entry{ // numbered 1 again
		Issuer: issuer, Kind: revocation.KindToken, Value: "c", IssuedBefore: now, Until: now.Add(time.Hour),
	})
	e.load(t)
	e.want(t, map[string]bool{"c": true})
	if n := e.logged("WARN", ""); n != 0 {
		t.Errorf("tidying up is warned of:\n%s", e.log)
	}
}

func TestList_MaxEntries(t *testing.T) {
	t.Parallel()
	now := start()
	e := newEnv(t, func(o *revocation.Options) {
		o.MaxEntries, o.Now = 10, func() time.Time { return now }
	})
	for i := range 15 {
		e.journal.add(strconv.Itoa(i))
	}
	e.closer.open = []revocation.Token{tokenWith("9"), tokenWith("10")}
	if err := e.Load(t.Context()); !errors.Is(err, revocation.ErrTooMany) {
		t.Fatalf("Load = %v, want %v", err, revocation.ErrTooMany)
	}
	e.want(t, map[string]bool{"0": true, "9": true, "10": false})
	if _, closed := e.closer.state(); !slices.Equal(closed, []string{"9"}) {
		t.Errorf("closed = %v, want what came into force", closed)
	}
	if err := e.Load(t.Context()); !errors.Is(err, revocation.ErrTooMany) || e.counts.get().known != 10 {
		t.Errorf("Load again = %v with %d entries, want %v with 10", err, e.counts.get().known, revocation.ErrTooMany)
	}
}

func TestOptions_Validate(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]revocation.Options{
		"no source":          {},
		"a negative pause":   {Source: &journal{}, Every: -1},
		"a negative maximum": {Source: &journal{}, MaxEntries: -1},
	} {
		if _, err := revocation.New(o); err == nil {
			t.Errorf("New with %s = nil error, want one", name)
		}
	}
	list, err := revocation.New(revocation.Options{Source: &journal{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := list.Load(t.Context()); err != nil {
		t.Errorf("Load with nothing but a source = %v", err)
	}
}

func TestList_RevokedAllocations(t *testing.T) {
	e := newEnv(t, nil)
	e.journal.add("a", "b", "c")
	e.load(t)
	token := revocation.Token{Issuer: issuer, ID: "x", GrantID: "g", SessionID: "s", Subject: "u", ClientID: "c", IssuedAt: start()}
	if n := testing.AllocsPerRun(100, func() { e.Revoked(token) }); n != 0 {
		t.Errorf("Revoked allocates %v times, want none", n)
	}
}

// BenchmarkRevoked shows that the length of the list makes no difference.
func BenchmarkRevoked(b *testing.B) {
	for _, entries := range []int{0, 100, 100_000} {
		b.Run(fmt.Sprintf("entries=%d", entries), func(b *testing.B) {
			e := newEnv(b, nil)
			for i := range entries {
				e.journal.entries = append(e.journal.entries, revocation.Entry{
					Seq: int64(i + 1), Issuer: issuer, Kind: revocation.KindToken, Value: strconv.Itoa(i), Until: start().Add(time.Hour),
				})
			}
			e.load(b)
			token := revocation.Token{Issuer: issuer, ID: "x", GrantID: "g", SessionID: "s", Subject: "u", ClientID: "c", IssuedAt: start()}
			b.ReportAllocs()
			for b.Loop() {
				e.Revoked(token)
			}
		})
	}
}
