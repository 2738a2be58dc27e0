package sqlstore

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// millis is the stored form of a time: whole milliseconds since 1970, rounded down, 0 for the zero time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// timeColumn scans millis into a time in UTC.
type timeColumn struct{ t *time.Time }

// Scan implements sql.Scanner.
func (c timeColumn) Scan(src any) error {
	n, ok := src.(int64)
	if !ok {
		return fmt.Errorf("time column holds %T", src)
	}
	if n == 0 {
		*c.t = time.Time{}
		return nil
	}
	*c.t = time.UnixMilli(n).UTC()
	return nil
}

// listText is the stored form of a list.
func listText(list []string) (string, error) {
	if len(list) == 0 {
		return "[]", nil
	}
	text, err := json.Marshal(list)
	return string(text), err
}

// mapText is the stored form of a map; its members are in order of their names.
func mapText(m map[string]string) (string, error) {
	if len(m) == 0 {
		return "{}", nil
	}
	text, err := json.Marshal(m)
	return string(text), err
}

// jsonColumn scans JSON text into a list or map; an empty one becomes nil.
type jsonColumn[T []string | map[string]string] struct{ v *T }

// Scan implements sql.Scanner.
func (c jsonColumn[T]) Scan(src any) error {
	text, err := textOf(src)
	if err != nil {
		return err
	}
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return fmt.Errorf("json column: %w", err)
	}
	if len(v) == 0 {
		v = nil
	}
	*c.v = v
	return nil
}

// rawColumn scans text into a raw JSON value of its own; empty text becomes nil.
type rawColumn struct{ v *json.RawMessage }

// Scan implements sql.Scanner.
func (c rawColumn) Scan(src any) error {
	text, err := textOf(src)
	if err != nil {
		return err
	}
	*c.v = nil
	if text != "" {
		*c.v = json.RawMessage(text)
	}
	return nil
}

func textOf(src any) (string, error) {
	switch v := src.(type) {
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	default:
		return "", fmt.Errorf("text column holds %T", src)
	}
}

// flag is the stored form of a bool.
func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// equalValues compares the values of two rows.
func equalValues(a, b []any) bool {
	return slices.EqualFunc(a, b, func(x, y any) bool {
		xb, ok1 := x.([]byte)
		yb, ok2 := y.([]byte)
		if ok1 && ok2 {
			return bytes.Equal(xb, yb)
		}
		return !ok1 && !ok2 && x == y
	})
}

func isNoRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }
