package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/sse"
)

func TestHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, math.MaxInt64>>2), 1, 200).Draw(t, "values")
		var a, b histogram
		for i, v := range values {
			if i%2 == 0 {
				a.add(time.Duration(v))
			} else {
				b.add(time.Duration(v))
			}
		}
		a.merge(&b)
		slices.Sort(values)
		for _, q := range []float64{0, 0.5, 0.99, 1} {
			want := values[min(int(q*float64(len(values))), len(values)-1)]
			if got := int64(a.quantile(q)); got > want || float64(got) < float64(want)*(1-1.0/64) {
				t.Fatalf("quantile(%v) = %d, want at most 1/64 below %d", q, got, want)
			}
		}
		if got, want := int64(a.longest), values[len(values)-1]; got != want {
			t.Fatalf("longest = %d, want %d", got, want)
		}
	})
	var empty histogram
	if got := empty.quantile(0.5); got != 0 {
		t.Errorf("quantile of nothing = %v, want 0", got)
	}
}

func TestMark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := mark{
			run: rapid.Uint32().Draw(t, "run"), lane: rapid.Uint32().Draw(t, "lane"), seq: rapid.Uint32().Draw(t, "seq"), sent: rapid.Int64().Draw(t, "sent"),
		}
		size := rapid.IntRange(markBytes, 300).Draw(t, "size")
		data := want.append(nil, size)
		if len(data) != size {
			t.Fatalf("%d bytes, want %d", len(data), size)
		}
		if got, ok := parseMark(data); !ok || got != want {
			t.Fatalf("parseMark = %v %v, want %v", got, ok, want)
		}
		cut := rapid.IntRange(0, markBytes-1).Draw(t, "cut")
		if _, ok := parseMark(data[:cut]); ok {
			t.Fatalf("a mark of %d bytes was read", cut)
		}
		data[cut] = '!'
		if _, ok := parseMark(data); ok {
			t.Fatalf("a mark with a wrong byte at %d was read", cut)
		}
	})
}

// inPieces feeds p in pieces of the given lengths, over and over.
func inPieces(p []byte, lengths []byte, feed func([]byte)) {
	for i := 0; len(p) > 0; i++ {
		n := len(p)
		if len(lengths) > 0 {
			n = min(n, 1+int(lengths[i%len(lengths)]))
		}
		feed(p[:n])
		p = p[n:]
	}
}

// FuzzEvents compares the parser with that of the product on streams of any form: both must find the same marks.
func FuzzEvents(f *testing.F) {
	m := string(mark{run: 7, lane: 1, seq: 2, sent: 3}.append(nil, 60))
	for _, stream := range []string{
		"data: " + m + "\n\n",
		":\n\nid: 1\ndata: " + m + "\n\ndata:" + m + "\r\n\r\n",
		"data: " + m + "\r\r",
		"data: " + m + "\ndata: more\n\n\n",
		"event: x\nretry: 1\ndata: " + m,
		"data: before\ndata: " + m + "\n\n",
		"database: " + m + "\n\n",
		strings.Repeat("x", 100) + "\ndata:  " + m + "\n\n",
	} {
		f.Add([]byte(stream), []byte{3})
	}
	f.Fuzz(func(t *testing.T, stream, lengths []byte) {
		stream = bytes.TrimPrefix(stream, []byte("\ufeff")) // a byte order mark, which this parser does not know
		if len(stream) > 1<<16 {
			return
		}
		var got []mark
		e := events{run: 7, each: func(m mark) { got = append(got, m) }}
		inPieces(stream, lengths, e.feed)
		var want []mark
		d := sse.NewDecoder(bytes.NewReader(stream), 1<<20)
		for {
			event, err := d.Next()
			if err != nil {
				break
			}
			for line := range strings.SplitSeq(event.Data, "\n") {
				if m, ok := parseMark([]byte(line)); ok && m.run == 7 {
					want = append(want, m)
					break
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("marks = %v, want %v", got, want)
		}
	})
}

func TestEvents_keepsLittle(t *testing.T) {
	var got int
	e := events{run: 7, each: func(mark) { got++ }}
	for range 1000 {
		e.feed(bytes.Repeat([]byte("data: x"), 1000))
	}
	e.feed([]byte("\n\n"))
	e.feed(append(append([]byte("data: "), mark{run: 7}.append(nil, 60)...), "\n\n"...))
	if cap(e.line) > 2*maxLine || got != 1 {
		t.Errorf("%d bytes are kept, %d events found, want at most %d and 1", cap(e.line), got, 2*maxLine)
	}
}

func TestResponse(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
	rapid.Check(t, func(t *rapid.T) {
		var body, want []byte
		chunked := rapid.Bool().Draw(t, "chunked")
		for i := range rapid.IntRange(0, 20).Draw(t, "events") {
			event := append(append([]byte("data: "), mark{run: 7, seq: uint32(i)}.append(nil, 60+i*20)...), "\n\n"...)
			want = append(want, byte(i))
			for len(event) > 0 {
				n := rapid.IntRange(1, len(event)).Draw(t, "chunk")
				if chunked {
					extension := rapid.SampledFrom([]string{"", ";a=b", " "}).Draw(t, "extension")
					format := rapid.SampledFrom([]string{"%x%s\r\n%s\r\n", "%X%s\r\n%s\r\n", "0%x%s\r\n%s\r\n"}).Draw(t, "size")
					body = fmt.Appendf(body, format, n, extension, event[:n])
				} else {
					body = append(body, event[:n]...)
				}
				event = event[n:]
			}
		}
		message := head + "\r\n" + string(body)
		if chunked {
			message = head + "Transfer-Encoding: chunked\r\n\r\n" + string(body) + "0\r\n\r\n"
		}
		var got []byte
		var err error
		r := response{events: events{run: 7, each: func(m mark) { got = append(got, byte(m.seq)) }}}
		inPieces([]byte(message), rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "pieces"), func(p []byte) {
			if err == nil {
				err = r.feed(p)
			}
		})
		if !bytes.Equal(got, want) || chunked != (err != nil) {
			t.Fatalf("events = %v, error %v, want %v", got, err, want)
		}
	})
	for name, message := range map[string]string{
		"another status":       "HTTP/1.1 403 Forbidden\r\nContent-Type: text/event-stream\r\n\r\n",
		"another type":         "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
		"no response":          "hello\r\n\r\n",
		"an endless head":      strings.Repeat("X: y\r\n", maxHead),
		"a chunk without size": head + "Transfer-Encoding: chunked\r\n\r\nx\r\n",
		"a chunk without end":  head + "Transfer-Encoding: chunked\r\n\r\n1\r\naa",
		"a chunk too large":    head + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("f", 17),
	} {
		r := response{}
		if err := r.feed([]byte(message)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestFollower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const lanes = 3
		var all []mark
		table := make([]lane, lanes)
		for l := range table {
			for range rapid.IntRange(0, 20).Draw(t, "sent") {
				all = append(all, mark{lane: uint32(l), seq: table[l].sent})
				if rapid.IntRange(0, 5).Draw(t, "failed") == 0 {
					table[l].failed = append(table[l].failed, table[l].sent)
				}
				table[l].sent++
			}
		}
		var come []mark
		for _, m := range all {
			for range rapid.SampledFrom([]int{1, 1, 1, 0, 2}).Draw(t, "times") {
				come = append(come, m)
			}
		}
		for range rapid.IntRange(0, 5).Draw(t, "swaps") {
			if len(come) > 1 {
				i := rapid.IntRange(0, len(come)-2).Draw(t, "swap")
				come[i], come[i+1] = come[i+1], come[i]
			}
		}
		f := follower{shared: make([]uint32, 2), own: 2}
		seen := map[mark]bool{}
		highest := map[uint32]uint32{}
		var delivered, repeated, late, lost int64
		for _, m := range come {
			f.see(m)
			switch {
			case seen[m]:
				repeated++
			case m.seq+1 < highest[m.lane]:
				late++
				delivered++
			default:
				delivered++
			}
			seen[m] = true
			highest[m.lane] = max(highest[m.lane], m.seq+1)
		}
		for _, m := range all {
			if !seen[m] && !slices.Contains(table[m.lane].failed, m.seq) {
				lost++
			}
		}
		if f.delivered != delivered || f.repeated != repeated || f.late != late || f.lost(table) != lost || f.stray != 0 {
			t.Fatalf("delivered %d repeated %d late %d lost %d stray %d, want %d %d %d %d 0",
				f.delivered, f.repeated, f.late, f.lost(table), f.stray, delivered, repeated, late, lost)
		}
	})
	t.Run("what is of another lane is a stray", func(t *testing.T) {
		f := follower{shared: make([]uint32, 1), own: noLane}
		f.see(mark{lane: 1})
		f.see(mark{lane: noLane})
		if f.stray != 2 || f.delivered != 0 {
			t.Errorf("stray = %d, delivered = %d, want 2 and 0", f.stray, f.delivered)
		}
	})
	t.Run("gaps without number are counted all the same", func(t *testing.T) {
		f := follower{shared: make([]uint32, 1), own: noLane}
		const seen = 2 * maxGaps
		for i := range uint32(seen) {
			f.see(mark{seq: 2*i + 1})
		}
		if got := f.lost([]lane{{sent: 2 * seen}}); got != seen || len(f.gaps) > maxGaps {
			t.Errorf("lost = %d with %d gaps, want %d with at most %d", got, len(f.gaps), seen, maxGaps)
		}
	})
}

func TestFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const fan, window, publishers = 10, 40, 8
		var f flow
		f.begin(fan, window)
		ctx, cancel := newCancel(t)
		defer cancel()
		published := make(chan struct{})
		for range publishers {
			go func() {
				for f.publish(ctx) {
					if over := (f.sent.Load()-publishers)*fan - f.delivered.Load(); over > window {
						t.Errorf("%d deliveries are outstanding, want at most %d", over, window)
					}
					select {
					case published <- struct{}{}:
					case <-ctx.Done():
					}
				}
			}()
		}
		for range 1000 {
			<-published
			for range fan {
				f.deliver(1)
			}
		}
	})
	t.Run("a publisher that waits ends with its context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var f flow
			f.begin(1, 1)
			ctx, cancel := newCancel(t)
			if !f.publish(ctx) {
				t.Error("there was room")
			}
			time.AfterFunc(time.Second, cancel)
			if f.publish(ctx) {
				t.Error("there was no room")
			}
			if !f.outstanding() || f.sent.Load() != 1 {
				t.Errorf("%d updates counted, want 1", f.sent.Load())
			}
		})
	})
}

func TestParseStat(t *testing.T) {
	const stat = "42 (a (b) c) S 1 42 42 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 8 0 100 1000000 300 18446744073709551615 1 1"
	u, err := parseStat(stat, 4096)
	if err != nil || u.cpu != 2*time.Second || u.resident != 300*4096 {
		t.Errorf("parseStat = %+v %v, want 2 s and 300 pages", u, err)
	}
	for _, wrong := range []string{"", "42 (a) S 1", strings.Replace(stat, " 300 ", " x ", 1)} {
		if _, err := parseStat(wrong, 4096); err == nil {
			t.Errorf("parseStat(%q) gave no error", wrong)
		}
	}
}

func TestResponse_doesNotAllocate(t *testing.T) {
	event := append(append([]byte("data: "), mark{run: 7}.append(nil, 200)...), "\n\n"...)
	chunk := fmt.Appendf(nil, "%x\r\n%s\r\n", len(event), event)
	var n int
	r := response{open: true, chunked: true, events: events{run: 7, line: make([]byte, 0, maxLine), each: func(mark) { n++ }}}
	allocs := testing.AllocsPerRun(100, func() {
		if err := errors.Join(r.feed(chunk[:50]), r.feed(chunk[50:])); err != nil {
			t.Error(err)
		}
	})
	if allocs != 0 || n == 0 {
		t.Errorf("%v allocations, %d events, want no allocation for an event", allocs, n)
	}
}

// BenchmarkRead measures what parsing a stream costs.
func BenchmarkRead(b *testing.B) {
	const count = 64
	var stream []byte
	for i := range count {
		event := append(append(fmt.Appendf(nil, "id: urn:uuid:00000000-0000-4000-8000-%012d\ndata: ", i), mark{run: 7, seq: uint32(i)}.append(nil, 200)...), "\n\n"...)
		stream = fmt.Appendf(stream, "%x\r\n%s\r\n", len(event), event)
	}
	var n int
	r := response{open: true, chunked: true, events: events{run: 7, each: func(mark) { n++ }}}
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		if err := r.feed(stream); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/event")
}
