package sse

import (
	"bufio"
	"errors"
	"io"
	"math"
	"strings"
	"time"
)

// ErrEventTooLarge says that an event exceeds the limit of its Decoder. The
// stream cannot be read any further.
var ErrEventTooLarge = errors.New("sse: event too large")

// DefaultMaxEventBytes is the limit of a Decoder that was given none.
const DefaultMaxEventBytes = 16 << 20

// Decoder reads the events of one stream by the algorithm of the WHATWG HTML
// standard. It is not safe for concurrent use.
//
// One deviation: a run of bytes that are not UTF-8 becomes a single U+FFFD.
type Decoder struct {
	r        *bufio.Reader
	maxBytes int

	line    []byte // the line being read, without its end
	started bool   // the first line is done, where a byte order mark is allowed
	skipLF  bool   // the line before ended with CR: an LF that follows belongs to it
	err     error  // sticky

	data   []byte // data fields of the event being read, an LF after each
	typ    string
	block  string // the retry field of the event being read
	lastID string
	retry  time.Duration
	hasRet bool
}

// NewDecoder returns a Decoder that reads from r. An event whose fields exceed
// maxEventBytes fails with ErrEventTooLarge; 0 or less means DefaultMaxEventBytes.
func NewDecoder(r io.Reader, maxEventBytes int) *Decoder {
	if maxEventBytes <= 0 {
		maxEventBytes = DefaultMaxEventBytes
	}
	return &Decoder{r: bufio.NewReader(r), maxBytes: maxEventBytes}
}

// Next returns the next event that carries data. At the end of the stream it
// returns io.EOF; an event that the stream left unfinished is discarded, as the
// standard says. Other errors are those of the reader, or ErrEventTooLarge; all
// of them are final.
func (d *Decoder) Next() (Event, error) {
	for {
		line, err := d.readLine()
		if err != nil {
			return Event{}, err
		}
		if len(line) > 0 {
			if err := d.field(line); err != nil {
				return Event{}, err
			}
			continue
		}
		if e, ok := d.dispatch(); ok {
			return e, nil
		}
	}
}

// LastEventID returns the last id the stream has carried, which is what a client
// sends when it reconnects. Like the standard's it can be ahead of the last event.
func (d *Decoder) LastEventID() string { return d.lastID }

// Retry returns the reconnection time the stream asked for last, and whether it
// asked for one.
func (d *Decoder) Retry() (time.Duration, bool) { return d.retry, d.hasRet }

// dispatch ends the event being read and tells whether there is one.
func (d *Decoder) dispatch() (Event, bool) {
	data, typ, retry := d.data, d.typ, d.block
	d.data, d.typ, d.block = d.data[:0], "", ""
	if len(data) == 0 {
		return Event{}, false
	}
	return Event{ID: d.lastID, Type: typ, Retry: retry, Data: string(data[:len(data)-1])}, true
}

// field processes one line that is not blank.
func (d *Decoder) field(line []byte) error {
	if line[0] == ':' {
		return nil
	}
	name, value, _ := strings.Cut(strings.ToValidUTF8(string(line), "\uFFFD"), ":")
	value = strings.TrimPrefix(value, " ")
	switch name {
	case "data":
		if len(d.data)+len(value)+1 > d.maxBytes {
			d.err = ErrEventTooLarge
			return d.err
		}
		d.data = append(append(d.data, value...), '\n')
	case "event":
		d.typ = value
	case "id":
		if !strings.Contains(value, "\x00") {
			d.lastID = value
		}
	case "retry":
		if isDigits(value) {
			d.block = value
			d.retry, d.hasRet = parseMillis(value), true
		}
	}
	return nil
}

// readLine returns the next line without its end. It returns as soon as the
// line's end is there: after a CR it does not wait for the LF that may follow.
func (d *Decoder) readLine() ([]byte, error) {
	if d.err != nil {
		return nil, d.err
	}
	d.line = d.line[:0]
	for {
		chunk, end := d.buffered()
		d.line = append(d.line, chunk...)
		if len(d.line) > d.maxBytes {
			d.err = ErrEventTooLarge
			return nil, d.err
		}
		if end {
			break
		}
		if _, err := d.r.Peek(1); err != nil {
			d.err = err
			return nil, err
		}
	}
	line := d.line
	if !d.started {
		d.started = true
		if len(line) >= 3 && line[0] == 0xEF && line[1] == 0xBB && line[2] == 0xBF {
			line = line[3:]
		}
	}
	return line, nil
}

// buffered takes from the reader's buffer up to the next line end, which it
// consumes; end tells whether there was one.
func (d *Decoder) buffered() (chunk []byte, end bool) {
	p, _ := d.r.Peek(d.r.Buffered()) // cannot fail: the bytes are there
	if d.skipLF && len(p) > 0 {
		d.skipLF = false
		if p[0] == '\n' {
			d.discard(1)
			p = p[1:]
		}
	}
	for i, c := range p {
		if c == '\n' || c == '\r' {
			d.skipLF = c == '\r'
			d.discard(i + 1)
			return p[:i], true
		}
	}
	d.discard(len(p))
	return p, false
}

// discard drops n bytes that are in the reader's buffer, which cannot fail.
func (d *Decoder) discard(n int) { _, _ = d.r.Discard(n) }

// parseMillis reads digits as milliseconds and saturates where a Duration ends.
func parseMillis(digits string) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	var ms int64
	for i := range len(digits) {
		ms = ms*10 + int64(digits[i]-'0')
		if ms > most {
			return time.Duration(most) * time.Millisecond
		}
	}
	return time.Duration(ms) * time.Millisecond
}
