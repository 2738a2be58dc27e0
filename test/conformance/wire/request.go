package wire

import (
	"bytes"
	"strconv"
	"strings"
)

// Field is a header field as it stands on the wire.
type Field struct{ Name, Value string }

// Request is a request as it is written: nothing is escaped, checked or added but what Host and the length of the body
// need. It is built by the With methods, which each give a changed copy, so a request can be the start of several.
type Request struct {
	Method string
	Target string // the request target: path and query, as written
	Host   string // the Host field; empty: the authority of the Dialer
	Fields []Field
	Body   []byte // nil: no body and no Content-Length
}

// With adds a field, after those that are there, also when one of the same name is.
func (r Request) With(name, value string) Request {
	fields := make([]Field, len(r.Fields), len(r.Fields)+1)
	copy(fields, r.Fields)
	r.Fields = append(fields, Field{Name: name, Value: value})
	return r
}

// WithBody sets the body and its media type.
func (r Request) WithBody(contentType, body string) Request {
	r = r.With("Content-Type", contentType)
	r.Body = []byte(body)
	return r
}

// bytes is the whole message. The connection is not kept: every request has its own, so that no check depends on what
// another one left behind.
func (r Request) bytes(host string) []byte {
	if r.Host != "" {
		host = r.Host
	}
	var b bytes.Buffer
	b.WriteString(r.Method + " " + r.Target + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n")
	for _, f := range r.Fields {
		b.WriteString(f.Name + ": " + f.Value + "\r\n")
	}
	if r.Body != nil {
		b.WriteString("Content-Length: " + strconv.Itoa(len(r.Body)) + "\r\n")
	}
	b.WriteString("\r\n")
	b.Write(r.Body)
	return b.Bytes()
}

// Escape percent-encodes all octets but the unreserved ones of RFC 3986, so that any text can stand in a query, in a
// form body or in a path segment.
func Escape(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

// Form is a form body or a query of names and values, each escaped.
func Form(pairs ...string) string {
	parts := make([]string, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		parts = append(parts, Escape(pairs[i])+"="+Escape(pairs[i+1]))
	}
	return strings.Join(parts, "&")
}
