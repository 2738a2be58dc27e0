package token

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Texts of JSON errors are fixed here: the library's own quote what they read.
var (
	errNotObject = errors.New("not a JSON object")
	errNotArray  = errors.New("not a JSON array")
	errNotString = errors.New("not a string")
	errNotNumber = errors.New("not a number")
	errSyntax    = errors.New("not well-formed JSON in UTF-8")
	errTwice     = errors.New("a member name is there twice")
	errRange     = errors.New("out of range")
)

// maxNumericDate is the last second of the year 9999, the end of what RFC 3339 can write.
const maxNumericDate = 253402300799

// readObject calls member for each member of the JSON object that is all of data. Names are byte-exact and must be
// unique; values are well-formed but not looked into, so that content nobody reads cannot matter (RAR-02). A value is
// valid until member returns.
func readObject(data []byte, member func(name string, v jsontext.Value) error) error {
	d := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	if d.PeekKind() != '{' {
		return errNotObject
	}
	if _, err := d.ReadToken(); err != nil {
		return errSyntax
	}
	seen := make(map[string]struct{}, 16)
	for d.PeekKind() != '}' {
		t, err := d.ReadToken()
		if err != nil {
			return errSyntax
		}
		name := t.String()
		if _, twice := seen[name]; twice {
			return errTwice
		}
		seen[name] = struct{}{}
		v, err := d.ReadValue()
		if err != nil {
			return errSyntax
		}
		if err := member(name, v); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return errSyntax
	}
	return atEnd(d)
}

// readArray calls element for each element of the JSON array that is all of v.
func readArray(v jsontext.Value, element func(v jsontext.Value) error) error {
	d := jsontext.NewDecoder(bytes.NewReader(v), jsontext.AllowDuplicateNames(true))
	if d.PeekKind() != '[' {
		return errNotArray
	}
	if _, err := d.ReadToken(); err != nil {
		return errSyntax
	}
	for d.PeekKind() != ']' {
		v, err := d.ReadValue()
		if err != nil {
			return errSyntax
		}
		if err := element(v); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return errSyntax
	}
	return atEnd(d)
}

func atEnd(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errSyntax
	}
	return nil
}

func readString(v jsontext.Value) (string, error) {
	if v.Kind() != '"' {
		return "", errNotString
	}
	s, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return "", errSyntax
	}
	return string(s), nil
}

func readStrings(v jsontext.Value) ([]string, error) {
	var all []string
	err := readArray(v, func(v jsontext.Value) error {
		s, err := readString(v)
		if err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	return all, err
}

// readDate reads a NumericDate (RFC 7519 section 2): seconds, possibly with a fraction, within the years 1970 to 9999.
func readDate(v jsontext.Value) (time.Time, error) {
	if v.Kind() != '0' {
		return time.Time{}, errNotNumber
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || f < 0 || f > maxNumericDate {
		return time.Time{}, errRange
	}
	seconds, fraction := math.Modf(f)
	return time.Unix(int64(seconds), int64(fraction*float64(time.Second))), nil
}
