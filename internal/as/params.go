package as

import (
	"errors"
	"net/url"
	"slices"
)

// MaxParameterBytes is the longest query string or form the endpoints read.
const MaxParameterBytes = 64 << 10

// errParameters says that a query string or form is not well-formed.
var errParameters = errors.New("as: malformed parameters")

// params are the parameters of a request. RFC 6749 sections 3.1 and 3.2 let each occur once, except resource, which
// RFC 8707 section 2 lets repeat; one that is empty counts as absent.
type params struct {
	values   url.Values
	repeated []string
}

// parseParams reads a query string or a form body. It reports malformed escapes and separators; repeated parameters
// are kept in order of appearance for the caller to refuse, as the answer depends on which they are.
func parseParams(raw string) (params, error) {
	if len(raw) > MaxParameterBytes {
		return params{}, errParameters
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return params{}, errors.Join(errParameters, err)
	}
	p := params{values: values}
	for name, v := range values {
		if len(v) > 1 && name != "resource" {
			p.repeated = append(p.repeated, name)
		}
	}
	slices.Sort(p.repeated)
	return p, nil
}

// get returns the only value of a parameter, or "".
func (p params) get(name string) string {
	if v := p.values[name]; len(v) == 1 {
		return v[0]
	}
	return ""
}

// has says whether a parameter is there with a value.
func (p params) has(name string) bool {
	return slices.ContainsFunc(p.values[name], func(v string) bool { return v != "" })
}

// isRepeated says whether any of the names occurs more than once.
func (p params) isRepeated(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(p.repeated, n) })
}
