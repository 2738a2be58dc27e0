package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Limits of what is read: a hub under test may be hostile or broken.
const (
	maxLine   = 64 << 10 // bytes of a header line
	maxFields = 256
	maxBody   = 8 << 20 // bytes of a body that is no stream
)

// ErrMalformed means that the peer does not speak HTTP/1.1.
var ErrMalformed = errors.New("wire: malformed response")

// Response is the answer to a request. An event stream's body is read with an EventReader over Stream; Close ends it.
type Response struct {
	Status int
	Fields []Field
	Body   string        // whole, unless Stream is set
	Stream io.ReadCloser // the body of a successful event stream; nil otherwise
	HTTP   string        // the protocol version of the status line, or HTTP/2.0
}

// Get gives the value of the first field of this name, compared case-insensitively, or nothing.
func (r *Response) Get(name string) string {
	if all := r.All(name); len(all) > 0 {
		return all[0]
	}
	return ""
}

// All gives the values of all fields of this name, in order.
func (r *Response) All(name string) []string {
	var all []string
	for _, f := range r.Fields {
		if strings.EqualFold(f.Name, name) {
			all = append(all, f.Value)
		}
	}
	return all
}

// Has says whether there is a field of this name.
func (r *Response) Has(name string) bool { return len(r.All(name)) > 0 }

// List splits the values of a comma-separated field, in lower case and without space around them.
func (r *Response) List(name string) []string {
	var list []string
	for _, v := range r.All(name) {
		for item := range strings.SplitSeq(v, ",") {
			if item = strings.ToLower(strings.TrimSpace(item)); item != "" {
				list = append(list, item)
			}
		}
	}
	return list
}

// MediaType is the media type in lower case, without parameters.
func (r *Response) MediaType() string {
	media, _, _ := strings.Cut(r.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// Close ends an event stream. It may be called on any response, more than once.
func (r *Response) Close() {
	if r.Stream != nil {
		_ = r.Stream.Close()
	}
}

// readResponse reads a message. It closes the connection, except where the answer is an event stream.
func readResponse(conn net.Conn, method string) (*Response, error) {
	br := bufio.NewReaderSize(conn, 16<<10)
	resp, err := readHead(br)
	for err == nil && resp.Status >= 100 && resp.Status < 200 {
		resp, err = readHead(br) // interim responses
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	body := bodyReader(resp, br, method)
	if resp.Status == 200 && resp.MediaType() == "text/event-stream" && method != "HEAD" {
		// From here on the reader of the stream sets the deadlines.
		_ = conn.SetDeadline(time.Time{})
		resp.Stream = &stream{Reader: body, close: conn.Close}
		return resp, nil
	}
	raw, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	_ = conn.Close()
	if err == nil && len(raw) > maxBody {
		err = fmt.Errorf("more than %d bytes", maxBody)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: body of a %d: %w", ErrMalformed, resp.Status, err)
	}
	resp.Body = string(raw)
	return resp, nil
}

func readHead(br *bufio.Reader) (*Response, error) {
	line, err := readLine(br)
	if err != nil {
		return nil, err
	}
	version, rest, ok := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	if !ok || !strings.HasPrefix(version, "HTTP/1.") || err != nil || status < 100 || status > 999 {
		return nil, fmt.Errorf("%w: status line %.60q", ErrMalformed, line)
	}
	resp := &Response{Status: status, HTTP: version}
	for {
		line, err := readLine(br)
		if err != nil {
			return nil, err
		}
		if line == "" {
			return resp, nil
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") || len(resp.Fields) == maxFields {
			return nil, fmt.Errorf("%w: field line %.60q", ErrMalformed, line)
		}
		resp.Fields = append(resp.Fields, Field{Name: name, Value: strings.Trim(value, " \t")})
	}
}

// readLine reads up to a line break, which is CRLF; a bare LF is tolerated as RFC 9112 section 2.2 allows.
func readLine(br *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		part, err := br.ReadSlice('\n')
		b.Write(part)
		if b.Len() > maxLine {
			return "", fmt.Errorf("%w: a line of more than %d bytes", ErrMalformed, maxLine)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("wire: read response: %w", err)
		}
		return strings.TrimSuffix(strings.TrimSuffix(b.String(), "\n"), "\r"), nil
	}
}

func bodyReader(resp *Response, br *bufio.Reader, method string) io.Reader {
	switch {
	case method == "HEAD", resp.Status == 204, resp.Status == 304:
		return strings.NewReader("")
	case strings.EqualFold(resp.Get("Transfer-Encoding"), "chunked"):
		return &chunked{br: br}
	case resp.Has("Content-Length"):
		n, err := strconv.ParseInt(resp.Get("Content-Length"), 10, 63)
		if err != nil || n < 0 {
			return &failing{fmt.Errorf("%w: Content-Length %.30q", ErrMalformed, resp.Get("Content-Length"))}
		}
		return &exactly{r: br, left: n}
	default:
		return br
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// exactly reads a body of known length and tells a cut one from a whole one.
type exactly struct {
	r    io.Reader
	left int64
}

func (e *exactly) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > e.left {
		p = p[:e.left]
	}
	n, err := e.r.Read(p)
	e.left -= int64(n)
	if errors.Is(err, io.EOF) && e.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// chunked reads the chunked coding (RFC 9112 section 7.1).
type chunked struct {
	br    *bufio.Reader
	left  int64
	begun bool // a chunk was read, and the line break behind it is still there
	done  bool
}

func (c *chunked) Read(p []byte) (int, error) {
	if c.done {
		return 0, io.EOF
	}
	if c.left == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
		if c.done {
			return 0, io.EOF
		}
	}
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.br.Read(p)
	c.left -= int64(n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// line reads a line of the coding; that the connection ends instead is unexpected.
func (c *chunked) line() (string, error) {
	line, err := readLine(c.br)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return line, err
}

// next reads up to the data of the next chunk. The line break behind a chunk is read only now: its data must not wait for it.
func (c *chunked) next() error {
	if c.begun {
		if line, err := c.line(); err != nil || line != "" {
			return errors.Join(err, fmt.Errorf("%w: %.30q behind a chunk", ErrMalformed, line))
		}
	}
	c.begun = true
	line, err := c.line()
	if err != nil {
		return err
	}
	size, _, _ := strings.Cut(line, ";")
	n, err := strconv.ParseInt(strings.TrimSpace(size), 16, 63)
	if err != nil || n < 0 {
		return fmt.Errorf("%w: chunk size %.30q", ErrMalformed, line)
	}
	if n > 0 {
		c.left = n
		return nil
	}
	for range maxFields { // trailers
		if line, err = c.line(); err != nil {
			return err
		}
		if line == "" {
			break
		}
	}
	c.done = true
	return nil
}

type stream struct {
	io.Reader

	close func() error
}

func (s *stream) Close() error { return s.close() }
