package config

import (
	"embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"sort"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// The reference is made from the types themselves and their comments, so that it cannot disagree with them.
//
//go:embed hub.go authz.go
var sources embed.FS

// ReferenceHub gives hub.yaml: every key with its comment, filled with an example.
func ReferenceHub() (string, error) {
	return reference(ExampleHub(), "The hub (hub serve --config hub.yaml).", HubEnvPrefix)
}

// ReferenceAuthz gives authz.yaml: every key with its comment, filled with an example.
func ReferenceAuthz() (string, error) {
	return reference(ExampleAuthz(), "The authorization server (authz serve --config authz.yaml).", AuthzEnvPrefix)
}

func reference(value any, title, prefix string) (string, error) {
	comments, err := fieldComments()
	if err != nil {
		return "", err
	}
	w := &writer{comments: comments}
	fmt.Fprintf(&w.b, "# %s\n# Every key can be set in the environment as %s and its path: tls.mode is %sTLS_MODE.\n\n", title, prefix, prefix)
	if err := w.structure(reflect.ValueOf(value), "", 0, false); err != nil {
		return "", err
	}
	return w.b.String(), nil
}

// fieldComments gives the doc comment of every field, by "Type.Field".
func fieldComments() (map[string]string, error) {
	out := map[string]string{}
	for _, name := range []string{"hub.go", "authz.go"} {
		src, err := sources.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read types: %w", err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("read types: %w", err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if st, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range st.Fields.List {
					for _, id := range f.Names {
						out[spec.Name.Name+"."+id.Name] = strings.TrimSpace(f.Doc.Text())
					}
				}
			}
			return false
		})
	}
	return out, nil
}

// writer prints a configuration as YAML, with comments or with origins.
type writer struct {
	b        strings.Builder
	comments map[string]string
	origin   func(path string) Origin // nil: origins are not shown
	inside   int                      // lists and maps around: they have one origin as a whole
}

func (w *writer) structure(v reflect.Value, path string, depth int, item bool) error {
	indent := strings.Repeat("  ", depth)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key := keyOf(f)
		if key == "" {
			continue
		}
		lead := indent
		for line := range strings.Lines(w.comments[v.Type().Name()+"."+f.Name]) {
			if item { // the dash of a list item stands before its first line, comment or key
				fmt.Fprintf(&w.b, "%s- # %s\n", indent[:len(indent)-2], strings.TrimSpace(line))
				item = false
				continue
			}
			fmt.Fprintf(&w.b, "%s# %s\n", indent, strings.TrimSpace(line))
		}
		if item {
			lead, item = indent[:len(indent)-2]+"- ", false
		}
		if err := w.field(v.Field(i), lead+key, join(path, key), depth); err != nil {
			return err
		}
		if depth == 0 && w.comments != nil {
			w.b.WriteByte('\n')
		}
	}
	return nil
}

func (w *writer) field(v reflect.Value, lead, path string, depth int) error {
	switch {
	case v.Kind() == reflect.Struct && !isLeaf(v.Type()):
		fmt.Fprintf(&w.b, "%s:\n", lead)
		return w.structure(v, path, depth+1, false)
	case v.Kind() == reflect.Slice && v.Len() > 0 && v.Type().Elem().Kind() == reflect.Struct:
		fmt.Fprintf(&w.b, "%s:%s\n", lead, w.from(path))
		return w.list(v, path, depth+2)
	case v.Kind() == reflect.Map && v.Len() > 0 && v.Type().Elem().Kind() != reflect.Interface:
		fmt.Fprintf(&w.b, "%s:%s\n", lead, w.from(path))
		return w.mapping(v, path, depth+1)
	}
	text, err := scalar(v)
	if err != nil {
		return fmt.Errorf("print %s: %w", path, err)
	}
	fmt.Fprintf(&w.b, "%s: %s%s\n", lead, text, w.from(path))
	return nil
}

func (w *writer) list(v reflect.Value, path string, depth int) error {
	comments := w.comments
	w.inside++
	defer func() { w.comments, w.inside = comments, w.inside-1 }()
	for i := range v.Len() {
		if i > 0 && w.comments != nil {
			w.comments = map[string]string{} // explained once
		}
		if err := w.structure(v.Index(i), fmt.Sprintf("%s[%d]", path, i), depth, true); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) mapping(v reflect.Value, path string, depth int) error {
	w.inside++
	defer func() { w.inside-- }()
	keys := v.MapKeys()
	sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
	for _, k := range keys {
		if err := w.field(v.MapIndex(k), strings.Repeat("  ", depth)+k.String(), join(path, k.String()), depth); err != nil {
			return err
		}
	}
	return nil
}

// from gives the comment that says where a value came from.
func (w *writer) from(path string) string {
	if w.origin == nil || w.inside > 0 {
		return ""
	}
	return " # " + string(w.origin(path))
}

// scalar prints a value in YAML's flow form, on one line.
func scalar(v reflect.Value) (string, error) {
	if d, ok := reflect.TypeAssert[time.Duration](v); ok {
		return shortDuration(d), nil
	}
	if v.Kind() == reflect.Slice && v.Len() == 0 {
		return "[]", nil
	}
	if v.Kind() == reflect.Map && v.Len() == 0 {
		return "{}", nil
	}
	var n yaml.Node
	if err := n.Encode(v.Interface()); err != nil {
		return "", err
	}
	n.Style = yaml.FlowStyle
	if n.Kind == yaml.ScalarNode {
		n.Style = 0
		if n.Value == "" {
			n.Style = yaml.DoubleQuotedStyle
		}
	}
	out, err := yaml.Marshal(&n)
	return strings.TrimSpace(string(out)), err
}

// shortDuration prints 1h0m0s as 1h.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
