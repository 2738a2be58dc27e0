package bolt

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// FuzzTopicKey: keys give back their topics, sort as topics do within their length, and begin as their topics begin.
func FuzzTopicKey(f *testing.F) {
	for _, s := range []string{"", "\x00", "\x00\x01", "\x00\x02", "\x00\xff", "a", "https://example.com/a", strings.Repeat("x", longTopic), strings.Repeat("x", longTopic+1)} {
		f.Add(s, "https://example.com/", uint64(1))
		f.Add(s, s, uint64(1<<63))
	}
	var key hashKey
	f.Fuzz(func(t *testing.T, topic, other string, p uint64) {
		k := key.topicKey(topic, true, history.Position(p))
		if keyPosition(k) != history.Position(p) {
			t.Errorf("position %d, want %d", keyPosition(k), p)
		}
		text, whole := wholeTopic(k)
		if whole != (len(topic) <= longTopic) || whole && text != topic {
			t.Errorf("wholeTopic() = %q, %t of %q", text, whole, topic)
		}
		same := bytes.HasPrefix(k, key.topicPrefix(nil, other, true))
		if same != (topic == other) {
			t.Errorf("the key of %q is one of %q: %t", topic, other, same)
		}
		begins := bytes.HasPrefix(k, rangePrefix(tagNormal, other))
		if strings.HasPrefix(topic, other) && !begins || begins && len(other) <= longTopic && !strings.HasPrefix(topic, other) {
			t.Errorf("the key of %q begins as those of %q: %t", topic, other, begins)
		}
		if len(k) > bbolt.MaxKeySize {
			t.Errorf("the key has %d bytes", len(k))
		}
	})
}

// FuzzRecord: whatever bytes are stored, decoding them is an error or gives a record that encodes to them.
func FuzzRecord(f *testing.F) {
	normal := func(s string) bool { return len(s)%2 == 0 }
	for _, r := range []*history.Record{
		{ID: "a", Topics: []string{"t"}},
		{ID: "é", Topics: []string{"", "ab"}, Private: true, Event: []byte("data: x\n\n")},
		{ID: "s", Topics: []string{"/s"}, Private: true, Subscription: true},
	} {
		f.Add(appendRecord(nil, 7, 1234, r, normal), true)
	}
	f.Add([]byte{}, false)
	f.Add(bytes.Repeat([]byte{255}, 40), true)
	f.Fuzz(func(t *testing.T, b []byte, sound bool) {
		if sound && len(b) >= fixedSize { // get beyond the checksum
			b = slices.Clone(b)
			sum := recordSum(7, b)
			b[16], b[17], b[18], b[19] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
		}
		v, err := decodeRecord(7, b)
		if err != nil {
			if _, ok := errors.AsType[recordError](err); !ok && !errors.Is(err, history.ErrNewerFormat) {
				t.Errorf("decodeRecord() = %v", err)
			}
			return
		}
		e := v.entry()
		var flags []bool
		_ = v.eachTopic(func(_ []byte, normal bool) error { flags = append(flags, normal); return nil })
		n := 0
		again := appendRecord(nil, 7, v.millis, &e.Record, func(string) bool { n++; return flags[n-1] })
		if !bytes.Equal(again, b) {
			t.Errorf("%x is decoded to %+v, which is encoded to %x", b, e, again)
		}
	})
}

func TestOutermost(t *testing.T) {
	for _, c := range []struct{ in, want []string }{
		{nil, nil},
		{[]string{}, nil},
		{[]string{"b", "a", "b"}, []string{"a", "b"}},
		{[]string{"ac", "ab", "a"}, []string{"a"}},
		{[]string{"x", ""}, []string{""}},
	} {
		if got := outermost(c.in); !slices.Equal(got, c.want) {
			t.Errorf("outermost(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

// Positions beyond what a page takes are left for another one, the latest first.
func TestGatherer_add(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.SampledFrom([]int{0, 1, gatherMost - 1, gatherMost, gatherMost + 1, 3 * gatherMost}).Draw(t, "count")
		step := rapid.SampledFrom([]int{1, 7, 11}).Draw(t, "step")
		g := gatherer{stretch: stretch{from: 1, to: 1 << 20}}
		for i := range count {
			if p := history.Position(1 + i*step%max(count, 1)); p <= g.to { // in whatever order, some more than once
				g.add(p)
			}
		}
		g.tidy()
		if !slices.IsSorted(g.positions) || len(g.positions) > gatherMost {
			t.Fatalf("%d positions", len(g.positions))
		}
		for i := range count {
			p := history.Position(1 + i*step%max(count, 1))
			_, found := slices.BinarySearch(g.positions, p)
			if found != (p <= g.to) {
				t.Fatalf("position %d is there: %t, through %d", p, found, g.to)
			}
		}
	})
}

// The index is used where it takes less than reading everything.
func TestGather_pays(t *testing.T) {
	l := testLog(t, Options{})
	n := 0
	err := l.Import(t.Context(), func() (history.Stamped, error) {
		if n == 3000 {
			return history.Stamped{}, errEnough
		}
		n++
		r := testRecord("a")
		if n%1000 != 0 {
			r.Topics = []string{"https://example.com/others"}
		}
		return history.Stamped{Record: *r}, nil
	})
	if !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		sel  history.Selection
		want int // -1: reading everything takes less
	}{
		"an exact topic":        {history.Selection{Exact: []string{"https://example.com/a"}}, 3},
		"no topic":              {history.Selection{Exact: []string{"https://example.com/b"}}, 0},
		"nearly everything":     {history.Selection{Exact: []string{"https://example.com/others"}}, -1},
		"a prefix":              {history.Selection{Pattern: func(s string) bool { return strings.HasSuffix(s, "a") }, Prefixes: []string{"https://example.com/a"}}, 3},
		"a pattern without one": {history.Selection{Pattern: func(s string) bool { return strings.HasSuffix(s, "a") }}, 3},
		"no prefix at all":      {history.Selection{Pattern: func(string) bool { return true }, Prefixes: []string{}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			err := l.stretch(0, 0, func(tx *bbolt.Tx, s stretch) error {
				g, ok, err := l.gather(tx, s, &c.sel)
				if err != nil || ok != (c.want >= 0) || ok && len(g.positions) != c.want {
					t.Errorf("gather() = %d positions, %t, %v, want %d", len(g.positions), ok, err, c.want)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
