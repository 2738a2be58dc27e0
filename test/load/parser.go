package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
)

// maxHead bounds the head of a response.
const maxHead = 64 << 10

var errEnded = errors.New("the hub ended the stream")

// response takes one HTTP/1.1 response apart, as its bytes come in.
type response struct {
	events events
	onHead func(http.Header)

	open    bool   // the head was read, and is that of a stream
	head    []byte // until it was read
	chunked bool
	state   chunkState
	size    uint64 // of the chunk, as far as it was read; then what is left of it
	ended   bool
}

type chunkState uint8

const (
	inSize chunkState = iota
	inExtension
	inData
	afterData
	inTrailer
)

// feed takes the next bytes. Its error says what is wrong with the response, or is errEnded.
func (r *response) feed(p []byte) error {
	if !r.open {
		rest, err := r.readHead(p)
		if err != nil || !r.open {
			return err
		}
		p = rest
	}
	if !r.chunked {
		r.events.feed(p)
		return nil
	}
	return r.chunks(p)
}

func (r *response) readHead(p []byte) (rest []byte, err error) {
	r.head = append(r.head, p...)
	end := bytes.Index(r.head, []byte("\r\n\r\n"))
	if end < 0 {
		if len(r.head) > maxHead {
			return nil, errors.New("the head of the response is too long")
		}
		return nil, nil
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(r.head[:end+4])), nil)
	if err != nil {
		return nil, fmt.Errorf("read the response: %w", err)
	}
	if err := checkStream(resp); err != nil {
		return nil, err
	}
	r.chunked = len(resp.TransferEncoding) > 0
	if r.onHead != nil {
		r.onHead(resp.Header)
	}
	rest = r.head[end+4:]
	r.head, r.open = nil, true
	return rest, nil
}

// statusError means that a subscription was not accepted.
type statusError struct {
	code   int
	status string
}

func (e *statusError) Error() string { return "the hub answered a subscription with " + e.status }

// checkStream says whether a response is a stream of events.
func checkStream(resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return &statusError{code: resp.StatusCode, status: resp.Status}
	}
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || kind != "text/event-stream" {
		return fmt.Errorf("the hub answered a subscription with content of the type %q", resp.Header.Get("Content-Type"))
	}
	return nil
}

func (r *response) chunks(p []byte) error {
	for len(p) > 0 {
		switch r.state {
		case inData:
			n := min(uint64(len(p)), r.size)
			r.events.feed(p[:n])
			p = p[n:]
			if r.size -= n; r.size == 0 {
				r.state = afterData
			}
		case inTrailer:
			return errEnded
		default:
			if err := r.chunkByte(p[0]); err != nil {
				return err
			}
			p = p[1:]
		}
	}
	if r.ended {
		return errEnded
	}
	return nil
}

// chunkByte takes a byte of what stands between the data of two chunks.
func (r *response) chunkByte(c byte) error {
	switch {
	case r.state == afterData:
		if c == '\n' {
			r.state = inSize
		} else if c != '\r' {
			return errors.New("a chunk has no end")
		}
	case c == '\n':
		r.state = inData
		if r.size == 0 {
			r.state, r.ended = inTrailer, true
		}
	case r.state == inExtension || c == '\r':
	case c == ';' || c == ' ' || c == '\t':
		r.state = inExtension
	default:
		if 'A' <= c && c <= 'F' {
			c += 'a' - 'A'
		}
		v, ok := digits([]byte{c}, '.')
		if !ok || r.size >= 1<<56 {
			return errors.New("a chunk has no size")
		}
		r.size = r.size<<4 | v
	}
	return nil
}

// maxLine is how much of a line is kept until its end comes: enough for a field name and a mark.
const maxLine = 16 + markBytes

// events takes a stream of server-sent events apart, as its bytes come in, and gives the marks of one run. An event counts
// when the empty line behind it has come.
type events struct {
	run  uint32
	each func(mark)

	line    []byte // the beginning of a line that has not ended yet
	partial bool   // there is one
	marked  bool
	m       mark
	cr      bool // the last byte was a CR
}

func (e *events) feed(p []byte) {
	if e.cr && len(p) > 0 {
		e.cr = false
		if p[0] == '\n' {
			p = p[1:]
		}
	}
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			end = len(p)
		}
		if cr := bytes.IndexByte(p[:end], '\r'); cr >= 0 {
			end = cr
		}
		if end == len(p) {
			e.keep(p)
			return
		}
		e.end(p[:end])
		if p[end] == '\r' {
			if end+1 == len(p) {
				e.cr = true
			} else if p[end+1] == '\n' {
				end++
			}
		}
		p = p[end+1:]
	}
}

// keep keeps the beginning of a line whose end has not come.
func (e *events) keep(p []byte) {
	e.partial = true
	if e.line == nil {
		e.line = make([]byte, 0, maxLine)
	}
	e.line = append(e.line, p[:min(len(p), maxLine-len(e.line))]...)
}

// end takes the rest of a line.
func (e *events) end(rest []byte) {
	line := rest
	if e.partial {
		e.keep(rest)
		line = e.line
	}
	if len(line) == 0 {
		if e.marked {
			e.each(e.m)
		}
		e.marked = false
	} else if value, ok := bytes.CutPrefix(line, []byte("data:")); ok && !e.marked {
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
		m, ok := parseMark(value)
		if ok && m.run == e.run {
			e.marked, e.m = true, m
		}
	}
	e.partial = false
	e.line = e.line[:0]
}
