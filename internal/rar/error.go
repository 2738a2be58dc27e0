package rar

import (
	"errors"
	"strconv"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// Error reports the first rule that a claim or a request breaks. It quotes nothing of the input, so that its text is
// safe to show and to log.
type Error struct {
	// Index is the position of the detail in the array; -1 when the array itself is at fault.
	Index int
	// Path is a JSON Pointer (RFC 6901) into the detail, empty for the detail itself.
	Path string
	// Rule says what is demanded.
	Rule string
}

// Error returns the place and the rule.
func (e *Error) Error() string {
	place := "authorization_details"
	if e.Index >= 0 {
		place += "[" + strconv.Itoa(e.Index) + "]" + e.Path
	}
	return place + " " + e.Rule
}

// Rules that several checks share.
const (
	ruleObject   = "must be a JSON object without duplicate members"
	ruleString   = "must be a string"
	ruleTooLong  = "is too long"
	rulePattern  = "must be a valid URL Pattern"
	ruleTypeName = "must be a supported matcher type"
)

// matcherPath returns the pointer to matcher i of a detail and, if member is not empty, to a member of it.
func matcherPath(i int, member string) string {
	path := "/topics/" + strconv.Itoa(i)
	if member != "" {
		path += "/" + member
	}
	return path
}

// compileError turns an error of [topic.Compiler.Compile] into the rule that was broken.
func compileError(detail, matcher int, err error) *Error {
	switch {
	case errors.Is(err, topic.ErrUnsupportedType):
		return &Error{Index: detail, Path: matcherPath(matcher, "match_type"), Rule: ruleTypeName}
	case errors.Is(err, topic.ErrPatternTooLong):
		return &Error{Index: detail, Path: matcherPath(matcher, "match"), Rule: ruleTooLong}
	default:
		return &Error{Index: detail, Path: matcherPath(matcher, "match"), Rule: rulePattern}
	}
}
