package sse_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/sse"
)

// lines joins the lines of an event and ends it.
func lines(ls ...string) string { return strings.Join(ls, "\n") + "\n\n" }

func TestAppendEvent(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   sse.Event
		want string
	}{
		{"SSE-05 all fields, in order", sse.Event{ID: "i", Type: "t", Retry: "10", Data: "d"}, "id: i\nevent: t\nretry: 10\ndata: d\n\n"},
		{"SSE-07 lines end with LF", sse.Event{Data: "a\nb"}, "data: a\ndata: b\n\n"},
		{"SSE-08 lines end with CR LF or CR", sse.Event{Data: "a\r\nb\rc"}, "data: a\ndata: b\ndata: c\n\n"},
		{"SSE-08 LF CR is two breaks", sse.Event{Data: "a\n\rb"}, lines("data: a", "data: ", "data: b")},
		{"SSE-08 CR before CR LF is two breaks", sse.Event{Data: "a\r\r\nb"}, lines("data: a", "data: ", "data: b")},
		{"SSE-09 a trailing CR LF", sse.Event{Data: "a\r\n"}, lines("data: a", "data: ")},
		{"SSE-09 a trailing break", sse.Event{Data: "a\n"}, "data: a\ndata: \n\n"},
		{"SSE-09 only breaks", sse.Event{Data: "\n\n"}, lines("data: ", "data: ", "data: ")},
		{"SSE-10 leading spaces", sse.Event{Data: " a\n  b\n\tc"}, "data:  a\ndata:   b\ndata: \tc\n\n"},
		{"SSE-11 no data", sse.Event{ID: "i"}, "id: i\ndata: \n\n"},
		{"SSE-12 data cannot add fields", sse.Event{ID: "i", Data: "x\nevent: evil\nid: evil\n\ndata: y"}, lines("id: i", "data: x", "data: event: evil", "data: id: evil", "data: ", "data: "+"data: y")},
		{"SSE-12 nor can the other fields", sse.Event{ID: "i\ndata: x", Type: "a\rb\x00", Retry: "1\n2"}, "id: idata: x\nevent: ab\ndata: \n\n"},
		{"SSE-13 leading spaces of type and id", sse.Event{ID: " i", Type: " mercure"}, "id:  i\nevent:  mercure\ndata: \n\n"},
		{"SSE-19 retry that is not digits", sse.Event{Retry: "-1"}, "data: \n\n"},
		{"SSE-19 retry with leading zeros", sse.Event{Retry: "007"}, "retry: 007\ndata: \n\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := string(sse.AppendEvent([]byte("<"), tc.in))
			if d := cmp.Diff("<"+tc.want, got); d != "" {
				t.Errorf("AppendEvent(%+v) (-want +got):\n%s", tc.in, d)
			}
		})
	}
}

func TestAppendComment(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"SSE-02 keep-alive", "", ":\n\n"},
		{"text", "hello", ": hello\n\n"},
		{"line breaks stay comments", "a\nb\r\nid: evil", ": a\n: b\n: id: evil\n\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := string(sse.AppendComment(nil, tc.text)); got != tc.want {
				t.Errorf("AppendComment(%q) = %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}

func TestAppendRetry(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1500 * time.Millisecond: "retry: 1500\n\n",
		0:                       "retry: 0\n\n",
		-time.Second:            "retry: 0\n\n",
	} {
		if got := string(sse.AppendRetry(nil, d)); got != want {
			t.Errorf("AppendRetry(%v) = %q, want %q", d, got, want)
		}
	}
}

// decodeAll reads every event of a stream.
func decodeAll(t *testing.T, r io.Reader, maxBytes int) ([]sse.Event, *sse.Decoder) {
	t.Helper()
	d := sse.NewDecoder(r, maxBytes)
	var events []sse.Event
	for {
		e, err := d.Next()
		if errors.Is(err, io.EOF) {
			return events, d
		}
		if err != nil {
			t.Fatalf("Next() = %v", err)
		}
		events = append(events, e)
	}
}

func TestDecoder(t *testing.T) {
	ev := func(data string) sse.Event { return sse.Event{Data: data} }
	for _, tc := range []struct {
		name, stream string
		want         []sse.Event
	}{
		{"all line ends", "data: a\ndata: b\n\ndata: c\r\ndata: d\r\n\r\ndata: e\rdata: f\r\r", []sse.Event{ev("a\nb"), ev("c\nd"), ev("e\nf")}},
		{"mixed line ends", "data: a\r\ndata: b\n\r\ndata: c\r\n\n", []sse.Event{ev("a\nb"), ev("c")}},
		{"a byte order mark", "\xEF\xBB\xBFdata: a\n\n", []sse.Event{ev("a")}},
		{"only one byte order mark", "\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\ndata: b\n\n", []sse.Event{ev("b")}},
		{"exactly one space goes", "data:a\ndata: b\ndata:  c\n\n", []sse.Event{ev("a\nb\n c")}},
		{"fields without a colon", lines("data", "", "data", "data"), []sse.Event{ev(""), ev("\n")}},
		{"comments and unknown fields", ": hi\n:\nfoo: bar\ndata: a\nData: x\n\n", []sse.Event{ev("a")}},
		{"blocks without data", "event: x\nid: 1\n\n\n\ndata: a\n\n", []sse.Event{{ID: "1", Data: "a"}}},
		{"an unfinished event", "data: a\n\ndata: b\n", []sse.Event{ev("a")}},
		{"ids last, types do not", "id: 1\nevent: t\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []sse.Event{{ID: "1", Type: "t", Data: "a"}, {ID: "1", Data: "b"}, ev("c")}},
		{"an id with NUL is ignored", "id: 1\nid: 2\x00\ndata: a\n\n", []sse.Event{{ID: "1", Data: "a"}}},
		{"the last of a field counts", "event: a\nevent: b\nid: 1\nid: 2\ndata: x\n\n", []sse.Event{{ID: "2", Type: "b", Data: "x"}}},
		{"retry must be digits", lines("retry: 1x", "retry:", "retry: 20", "retry: +3", "data: a"), []sse.Event{{Retry: "20", Data: "a"}}},
		{"bytes that are not UTF-8", "data: a\xFFb\n\n", []sse.Event{ev("a\uFFFDb")}},
		{"an empty stream", "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{
				"whole": strings.NewReader(tc.stream), "by bytes": iotest.OneByteReader(strings.NewReader(tc.stream)),
			} {
				got, _ := decodeAll(t, r, 0)
				if d := cmp.Diff(tc.want, got); d != "" {
					t.Errorf("%s (-want +got):\n%s", name, d)
				}
			}
		})
	}
}

func TestDecoder_Retry(t *testing.T) {
	_, d := decodeAll(t, strings.NewReader("data: a\n\n"), 0)
	if got, ok := d.Retry(); ok {
		t.Errorf("Retry() = %v without a retry field", got)
	}
	for digits, want := range map[string]time.Duration{
		"1500": 1500 * time.Millisecond, "0": 0, "007": 7 * time.Millisecond,
		strings.Repeat("9", 1000): 9223372036854 * time.Millisecond,
	} {
		_, d := decodeAll(t, strings.NewReader("retry: "+digits+"\n\n"), 0)
		if got, ok := d.Retry(); !ok || got != want {
			t.Errorf("Retry() = %v, %v after %.20q, want %v", got, ok, digits, want)
		}
	}
}

func TestDecoder_LastEventID(t *testing.T) {
	_, d := decodeAll(t, strings.NewReader("id: 1\ndata: a\n\nid: 2\n\n"), 0)
	if got := d.LastEventID(); got != "2" {
		t.Errorf("LastEventID() = %q, want 2, which came without data", got)
	}
}

func TestDecoder_limits(t *testing.T) {
	for name, stream := range map[string]string{
		"a long line":     "data: " + strings.Repeat("x", 200) + "\n\n",
		"many lines":      strings.Repeat("data: 0123456789\n", 20) + "\n",
		"an endless line": ":" + strings.Repeat("x", 100_000),
	} {
		d := sse.NewDecoder(strings.NewReader("data: ok\n\n"+stream), 100)
		if e, err := d.Next(); err != nil || e.Data != "ok" {
			t.Fatalf("Next() = %+v, %v", e, err)
		}
		for range 2 {
			if e, err := d.Next(); !errors.Is(err, sse.ErrEventTooLarge) {
				t.Errorf("%s: Next() = %+v, %v, want ErrEventTooLarge", name, e, err)
			}
		}
	}
}

// A stream whose lines end with CR must not make the reader wait for an LF that may
// never come.
func TestDecoder_doesNotWaitAfterCR(t *testing.T) {
	r, w := io.Pipe()
	t.Cleanup(func() { _ = r.Close() })
	go func() { _, _ = w.Write([]byte("data: a\r\r")) }()
	if e, err := sse.NewDecoder(r, 0).Next(); err != nil || e.Data != "a" {
		t.Errorf("Next() = %+v, %v", e, err)
	}
}

func TestDecoder_readerFails(t *testing.T) {
	broken := errors.New("broken")
	d := sse.NewDecoder(io.MultiReader(strings.NewReader("data: a\n\ndata"), iotest.ErrReader(broken)), 0)
	if e, err := d.Next(); err != nil || e.Data != "a" {
		t.Fatalf("Next() = %+v, %v", e, err)
	}
	for range 2 {
		if _, err := d.Next(); !errors.Is(err, broken) {
			t.Errorf("Next() = %v, want the reader's error", err)
		}
	}
}

// normalise returns the event that a receiver must get for e.
func normalise(e sse.Event) sse.Event {
	oneLine := strings.NewReplacer("\r", "", "\n", "", "\x00", "")
	lines := strings.NewReplacer("\r\n", "\n", "\r", "\n")
	valid := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
	n := sse.Event{ID: valid(oneLine.Replace(e.ID)), Type: valid(oneLine.Replace(e.Type))}
	if e.Retry != "" && strings.Trim(e.Retry, "0123456789") == "" {
		n.Retry = e.Retry
	}
	// Each line is decoded by itself: a run of bytes that are not UTF-8 ends with it.
	parts := strings.Split(lines.Replace(e.Data), "\n")
	for i := range parts {
		parts[i] = valid(parts[i])
	}
	n.Data = strings.Join(parts, "\n")
	return n
}

func FuzzAppendEvent(f *testing.F) {
	f.Add("i", "t", "1", "d")
	f.Add(" i", " mercure", "007", " a\r\n\n b\r")
	f.Add("i\ndata: x", "t\r\n\r\n", "1\n2", "x\nevent: evil\nid: evil\n\ndata: y")
	f.Add("\x00", "\xff", "", "\xef\xbb\xbf\u2028\u0085\x00: ")
	f.Fuzz(func(t *testing.T, id, typ, retry, data string) {
		in := sse.Event{ID: id, Type: typ, Retry: retry, Data: data}
		first := sse.AppendEvent(nil, in)
		stream := sse.AppendEvent(sse.AppendComment(bytes.Clone(first), data), sse.Event{ID: "end", Data: "end"})
		got, _ := decodeAll(t, bytes.NewReader(stream), len(stream)+100)
		want := []sse.Event{normalise(in), {ID: "end", Data: "end"}}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("decode(AppendEvent(%+q)) (-want +got):\n%s", in, d)
		}
	})
}

// FuzzDecoder compares any chunking of any stream with reading it at once.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte("id: 1\r\ndata: a\rdata:b\n\r\n:x\n\n"))
	f.Add([]byte("\xef\xbb\xbfdata\n\nretry: 9\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		whole, _ := decodeAll(t, bytes.NewReader(stream), len(stream)*4+100)
		slow, _ := decodeAll(t, iotest.OneByteReader(bytes.NewReader(stream)), len(stream)*4+100)
		if d := cmp.Diff(whole, slow); d != "" {
			t.Errorf("chunks change the events (-whole +slow):\n%s", d)
		}
	})
}

func BenchmarkAppendEvent(b *testing.B) {
	e := sse.Event{ID: "urn:uuid:00000000-0000-4000-8000-000000000000", Data: strings.Repeat("x", 300)}
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		buf = sse.AppendEvent(buf[:0], e)
	}
}
