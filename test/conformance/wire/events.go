package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// MaxEvent bounds the bytes of one event.
const MaxEvent = 4 << 20

// ErrStream means that what arrived is no event stream.
var ErrStream = errors.New("wire: malformed event stream")

// Line is a field line of an event as it stands in the stream: its name, and its value after one space was removed.
type Line struct{ Name, Value string }

// Event is a block of a stream: the lines up to an empty one. ID, Type, Data and Retry are what the interpretation of
// the standard makes of them, except that a block without data is given too, with Dispatched false.
type Event struct {
	Lines      []Line
	Comments   []string // the text after the colon
	ID         string
	Type       string // empty when no event field was there
	Data       string
	Retry      string // the value of the last retry field
	HasID      bool
	Dispatched bool // a receiver would dispatch it: there was a data field
}

// Count gives how many field lines of this name the event has.
func (e *Event) Count(name string) int {
	n := 0
	for _, l := range e.Lines {
		if l.Name == name {
			n++
		}
	}
	return n
}

// EventReader interprets an event stream by the rules of the standard (WHATWG HTML section 9.2.6).
type EventReader struct {
	br     *bufio.Reader
	began  bool
	skipLF bool
}

// NewEventReader reads from r.
func NewEventReader(r io.Reader) *EventReader {
	return &EventReader{br: bufio.NewReaderSize(r, 32<<10)}
}

// Next gives the next block that is not empty. A comment that stands alone is a block too, at its line's end, so that a
// keep-alive is seen when it arrives. io.EOF means that the stream ended between blocks, io.ErrUnexpectedEOF that it
// ended inside one.
func (r *EventReader) Next() (Event, error) {
	var e Event
	var data []string
	size := 0
	for {
		line, err := r.line()
		if err != nil {
			if errors.Is(err, io.EOF) && (len(e.Lines) > 0 || line != "") {
				err = io.ErrUnexpectedEOF
			}
			return Event{}, err
		}
		if size += len(line); size > MaxEvent {
			return Event{}, fmt.Errorf("%w: an event of more than %d bytes", ErrStream, MaxEvent)
		}
		if line == "" {
			if len(e.Lines) == 0 {
				continue
			}
			e.Dispatched = data != nil
			e.Data = strings.Join(data, "\n")
			return e, nil
		}
		if text, ok := strings.CutPrefix(line, ":"); ok {
			e.Comments = append(e.Comments, text)
			if len(e.Lines) == 0 {
				return e, nil
			}
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		e.Lines = append(e.Lines, Line{Name: name, Value: value})
		switch name {
		case "id":
			// A value with U+0000 is ignored by the standard.
			if !strings.Contains(value, "\x00") {
				e.ID, e.HasID = value, true
			}
		case "event":
			e.Type = value
		case "data":
			data = append(data, value)
		case "retry":
			e.Retry = value
		}
	}
}

// line reads a line that ends with LF, CR or CRLF. A CR ends its line at once, without waiting for what follows.
func (r *EventReader) line() (string, error) {
	var b bytes.Buffer
	for {
		c, err := r.br.ReadByte()
		if err != nil {
			return b.String(), err
		}
		if r.skipLF {
			r.skipLF = false
			if c == '\n' {
				continue
			}
		}
		if c == '\n' || c == '\r' {
			r.skipLF = c == '\r'
			break
		}
		b.WriteByte(c)
		if b.Len() > MaxEvent {
			return "", fmt.Errorf("%w: a line of more than %d bytes", ErrStream, MaxEvent)
		}
	}
	line := b.String()
	if !r.began {
		r.began = true
		line = strings.TrimPrefix(line, "\uFEFF")
	}
	if !utf8.ValidString(line) {
		return "", fmt.Errorf("%w: a line that is not UTF-8: %.60q", ErrStream, line)
	}
	return line, nil
}
