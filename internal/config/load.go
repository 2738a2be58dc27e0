package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxFileBytes bounds a configuration file; a larger one is surely something else.
const maxFileBytes = 4 << 20

// ErrInvalid is wrapped by every error about what a configuration says, as opposed to one about reading it.
var ErrInvalid = errors.New("config: invalid")

// Origin says where the effective value of a key came from.
type Origin string

// The origins of a value.
const (
	FromDefault     Origin = "default"
	FromFile        Origin = "file"
	FromEnvironment Origin = "environment"
)

// Source is what a configuration is loaded from.
type Source struct {
	Path    string   // file; empty: defaults and environment alone
	Environ []string // as os.Environ gives it
}

// Loaded is a configuration with the origin of each key that does not have its default, by dotted path.
type Loaded[T any] struct {
	Value   T
	Origins map[string]Origin
}

// validator is what a configuration tree offers beyond its fields.
type validator interface{ Validate() error }

// LoadHub loads, completes and validates the hub's configuration. Errors wrap ErrInvalid, or come from reading the file.
func LoadHub(s Source) (*Loaded[Hub], error) {
	return load(s, HubEnvPrefix, DefaultHub())
}

// LoadAuthz loads, completes and validates the authorization server's configuration. Errors are as for LoadHub.
func LoadAuthz(s Source) (*Loaded[Authz], error) {
	return load(s, AuthzEnvPrefix, DefaultAuthz())
}

func load[T any](s Source, prefix string, defaults T) (*Loaded[T], error) {
	l := &Loaded[T]{Value: defaults, Origins: map[string]Origin{}}
	if s.Path != "" {
		if err := l.readFile(s.Path); err != nil {
			return nil, err
		}
	}
	if err := l.readEnviron(prefix, s.Environ); err != nil {
		return nil, err
	}
	if v, ok := any(&l.Value).(validator); ok {
		if err := v.Validate(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return l, nil
}

func (l *Loaded[T]) readFile(path string) error {
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	if len(raw) > maxFileBytes {
		return fmt.Errorf("%w: %s is larger than %d bytes", ErrInvalid, path, maxFileBytes)
	}
	if err := l.decode(raw); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrInvalid, path, err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	resolveFiles(reflect.ValueOf(&l.Value).Elem(), dir)
	return nil
}

// decode reads one YAML document into the value, refusing unknown and repeated keys before anything is set.
func (l *Loaded[T]) decode(raw []byte) error {
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return errors.New("more than one YAML document")
	}
	root := doc.Content[0]
	if err := checkKeys(root, reflect.TypeOf(l.Value), ""); err != nil {
		return err
	}
	markOrigins(root, "", reflect.TypeOf(l.Value), l.Origins)
	return root.Decode(&l.Value)
}

// checkKeys walks a YAML node beside the type it will be decoded into.
func checkKeys(n *yaml.Node, t reflect.Type, path string) error {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if isLeaf(t) || n.ShortTag() == "!!null" {
		return nil
	}
	if want, ok := checkValue(n, t); !ok {
		return fmt.Errorf("line %d: %s", n.Line, strings.TrimPrefix(path+" must be "+want, " "))
	}
	switch t.Kind() {
	case reflect.Slice:
		for i, c := range n.Content {
			if err := checkKeys(c, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if err := checkKeys(n.Content[i+1], t.Elem(), join(path, n.Content[i].Value)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		return checkStructKeys(n, t, path)
	default: // one value
	}
	return nil
}

// checkValue says what a value must be, and whether it is. The decoder would say it with types of this program.
func checkValue(n *yaml.Node, t reflect.Type) (want string, ok bool) {
	switch kind := t.Kind(); {
	case t == reflect.TypeFor[time.Duration]():
		want = "a duration, such as 30s or 1h30m"
	case kind == reflect.Struct || kind == reflect.Map:
		return "keys with values", n.Kind == yaml.MappingNode
	case kind == reflect.Slice:
		return "a list", n.Kind == yaml.SequenceNode
	case kind == reflect.Bool:
		want = "true or false"
	case kind == reflect.String:
		want = "one value"
	default:
		want = "a number"
	}
	return want, n.Decode(reflect.New(t).Interface()) == nil
}

func checkStructKeys(n *yaml.Node, t reflect.Type, path string) error {
	fields := fieldsOf(t)
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		f, ok := fields[k.Value]
		if !ok {
			return fmt.Errorf("line %d: unknown key %q%s", k.Line, join(path, k.Value), suggest(k.Value, fields))
		}
		if seen[k.Value] {
			return fmt.Errorf("line %d: key %q is repeated", k.Line, join(path, k.Value))
		}
		seen[k.Value] = true
		if err := checkKeys(n.Content[i+1], f.Type, join(path, k.Value)); err != nil {
			return err
		}
	}
	return nil
}

func markOrigins(n *yaml.Node, path string, t reflect.Type, into map[string]Origin) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if t.Kind() == reflect.Struct && !isLeaf(t) && n.Kind == yaml.MappingNode {
		fields := fieldsOf(t)
		for i := 0; i+1 < len(n.Content); i += 2 {
			markOrigins(n.Content[i+1], join(path, n.Content[i].Value), fields[n.Content[i].Value].Type, into)
		}
		return
	}
	into[path] = FromFile
}

// readEnviron overlays the variables with the prefix; an unknown one is an error, since a typing mistake in a variable
// is as silent and as costly as one in a file.
func (l *Loaded[T]) readEnviron(prefix string, environ []string) error {
	leaves := map[string]leaf{}
	collectLeaves(reflect.ValueOf(&l.Value).Elem(), "", leaves)
	byVariable := make(map[string]leaf, len(leaves))
	names := map[string]reflect.StructField{}
	for path, lf := range leaves {
		v := prefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
		byVariable[v], names[v] = lf, reflect.StructField{}
	}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		lf, ok := byVariable[name]
		if !ok {
			return fmt.Errorf("%w: unknown variable %s%s", ErrInvalid, name, suggest(name, names))
		}
		if value == "" && lf.value.Kind() != reflect.String {
			continue
		}
		if err := setFromEnviron(lf.value, value); err != nil {
			return fmt.Errorf("%w: variable %s: %w", ErrInvalid, name, err)
		}
		l.Origins[lf.path] = FromEnvironment
	}
	return nil
}

func setFromEnviron(v reflect.Value, raw string) error {
	if v.Kind() == reflect.String {
		v.SetString(raw)
		return nil
	}
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(raw), &n); err != nil {
		return err
	}
	if len(n.Content) == 0 {
		return errors.New("holds nothing")
	}
	if err := checkKeys(n.Content[0], v.Type(), ""); err != nil {
		return err
	}
	fresh := reflect.New(v.Type())
	if err := n.Content[0].Decode(fresh.Interface()); err != nil {
		return err
	}
	v.Set(fresh.Elem())
	return nil
}

type leaf struct {
	path  string
	value reflect.Value
}

func collectLeaves(v reflect.Value, path string, into map[string]leaf) {
	if v.Kind() != reflect.Struct || isLeaf(v.Type()) {
		into[path] = leaf{path: path, value: v}
		return
	}
	for i := range v.NumField() {
		if key := keyOf(v.Type().Field(i)); key != "" {
			collectLeaves(v.Field(i), join(path, key), into)
		}
	}
}

// resolveFiles makes the names of files relative to the folder of the configuration file.
func resolveFiles(v reflect.Value, dir string) {
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			resolveFiles(field, dir)
		}
	case reflect.Slice:
		for i := range v.Len() {
			resolveFiles(v.Index(i), dir)
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[File]() && v.String() != "" && !filepath.IsAbs(v.String()) {
			v.SetString(filepath.Join(dir, v.String()))
		}
	default: // no names of files in there
	}
}

// isLeaf says whether a type is one value to the reader of a configuration: it decodes itself, or it has no fields.
func isLeaf(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[yaml.Unmarshaler]())
}

func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	if key == "-" {
		return ""
	}
	return key
}

func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	m := make(map[string]reflect.StructField, t.NumField())
	for f := range t.Fields() {
		if key := keyOf(f); key != "" {
			m[key] = f
		}
	}
	return m
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// suggest names the nearest known key when it is near enough to be what was meant.
func suggest(key string, known map[string]reflect.StructField) string {
	names := make([]string, 0, len(known))
	for k := range known {
		names = append(names, k)
	}
	sort.Strings(names)
	best, at := "", len(key)/2+1
	for _, k := range names {
		if d := distance(key, k); d < at {
			best, at = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance is the Levenshtein distance of two short ASCII names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		last := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := last
			if a[i-1] != b[j-1] {
				cost++
			}
			last = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
