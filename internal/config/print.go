package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// Printed is one effective value of a configuration.
type Printed struct {
	// Value is the value as the file would say it: sizes and durations are texts.
	Value any `json:"value"`
	// Origin says where it came from. A list or a map has one origin as a whole.
	Origin Origin `json:"origin"`
}

// Print writes the effective values as YAML, each with its origin unless none are known (Origins is nil). Configuration holds names of
// files with secrets, never secrets, so nothing needs to be hidden.
func Print[T any](l *Loaded[T]) (string, error) {
	w := &writer{}
	if l.Origins != nil {
		w.origin = l.origin
	}
	if err := w.structure(reflect.ValueOf(l.Value), "", 0, false); err != nil {
		return "", err
	}
	return w.b.String(), nil
}

// PrintJSON writes the effective values as one JSON object of [Printed] by dotted path.
func PrintJSON[T any](l *Loaded[T]) (string, error) {
	leaves := map[string]leaf{}
	collectLeaves(reflect.ValueOf(&l.Value).Elem(), "", leaves)
	out := make(map[string]Printed, len(leaves))
	for path, lf := range leaves {
		out[path] = Printed{Value: plain(lf.value), Origin: l.origin(path)}
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return "", fmt.Errorf("print configuration: %w", err)
	}
	return string(text) + "\n", nil
}

// origin gives the origin of a key.
func (l *Loaded[T]) origin(path string) Origin {
	if o, ok := l.Origins[path]; ok {
		return o
	}
	return FromDefault
}

// plain turns a value into what JSON can say of it, under the names that the file uses.
func plain(v reflect.Value) any {
	if d, ok := reflect.TypeAssert[time.Duration](v); ok {
		return shortDuration(d)
	}
	if s, ok := reflect.TypeAssert[fmt.Stringer](v); ok {
		return s.String()
	}
	switch v.Kind() {
	case reflect.Struct:
		out := map[string]any{}
		for i := range v.NumField() {
			if key := keyOf(v.Type().Field(i)); key != "" {
				out[key] = plain(v.Field(i))
			}
		}
		return out
	case reflect.Slice:
		out := make([]any, 0, v.Len())
		for i := range v.Len() {
			out = append(out, plain(v.Index(i)))
		}
		return out
	case reflect.Map:
		out := map[string]any{}
		for it := v.MapRange(); it.Next(); {
			out[it.Key().String()] = plain(it.Value())
		}
		return out
	default:
		return v.Interface()
	}
}
