package topic

import (
	"fmt"

	"github.com/nlnwa/whatwg-url/url"
)

// defaultPatternBytes is the longest matcher accepted when Limits does not say otherwise.
const defaultPatternBytes = 4096

// Limits bounds what a Compiler accepts.
type Limits struct {
	// PatternBytes is the longest matcher in bytes; 0 means 4096.
	PatternBytes int
}

// Compiler turns matchers and topics into their parsed forms, relative to one hub URL. It is safe for concurrent use.
type Compiler struct {
	hubURL   string
	hub      *url.Url
	reserved string // the path of the hub URL, without needless percent-encoding
	parser   url.Parser
	limits   Limits
}

// NewCompiler returns a compiler for the hub at hubURL, an absolute http or https URL without userinfo, query and fragment. The
// error wraps [ErrHubURL].
func NewCompiler(hubURL string, l Limits) (*Compiler, error) {
	parser := url.NewParser()
	u, err := parser.Parse(hubURL)
	if err != nil || (u.Scheme() != "http" && u.Scheme() != "https") ||
		u.Username() != "" || u.Password() != "" || u.Query() != "" || u.Fragment() != "" {
		return nil, fmt.Errorf("new compiler: %w", ErrHubURL)
	}
	if l.PatternBytes == 0 {
		l.PatternBytes = defaultPatternBytes
	}
	// Resolving against a URL clones it, and cloning fills in the search parameters lazily: a data race unless they
	// are there before the URL is shared.
	u.SearchParams()
	return &Compiler{hubURL: hubURL, hub: u, reserved: decodeUnreserved(u.Pathname()), parser: parser, limits: l}, nil
}

// HubURL returns the hub URL the compiler was made for, byte for byte.
func (c *Compiler) HubURL() string { return c.hubURL }

// HubPath returns the path of the hub URL as the URL parser serialises it.
func (c *Compiler) HubPath() string { return c.hub.Pathname() }

// Compile returns the matcher of type t for pattern. Errors are [ErrUnsupportedType], [ErrPatternTooLong] and
// [ErrPattern]; none quotes the pattern. The value "*" is the wildcard for every supported type (MATCH-06).
func (c *Compiler) Compile(t Type, pattern string) (*Matcher, error) {
	if _, err := ParseType(string(t)); err != nil {
		return nil, err
	}
	if len(pattern) > c.limits.PatternBytes {
		return nil, ErrPatternTooLong
	}
	m := &Matcher{typ: t, pattern: pattern, compiler: c, wildcard: pattern == Wildcard}
	if t == Exact || m.wildcard {
		return m, nil
	}
	u, err := newURLPattern(pattern, c.hubURL)
	if err != nil {
		return nil, err
	}
	m.url = u
	return m, nil
}
