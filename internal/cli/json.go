package cli

import (
	"encoding"
	"encoding/json"
	"io"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
)

// JSONFlag adds --json to a command, and says in its help what that prints: kind, with the members of shape, which is the struct that
// is encoded. The members are a contract, and as they come from the struct, the help is true.
func JSONFlag(c *cobra.Command, to *bool, kind string, shape any) {
	c.Flags().BoolVar(to, "json", false, "print JSON")
	if c.Long == "" {
		c.Long = c.Short + "."
	}
	c.Long += "\n\n" + wrap("With --json it prints "+kind+": "+members(reflect.TypeOf(shape))+".")
}

// members names the JSON members of a type, in their order; a ? marks one that may be absent.
func members(t reflect.Type) string {
	var names []string
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
			continue
		case f.Anonymous && name == "":
			names = append(names, members(f.Type))
			continue
		}
		if strings.Contains(options, "omit") {
			name += "?"
		}
		inner := f.Type
		for inner.Kind() == reflect.Slice || inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && !inner.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
			name += " (" + members(inner) + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// wrap breaks a text into lines that fit a terminal.
func wrap(text string) string {
	const width = 116
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
		case column+1+len(word) > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}

// PrintJSON writes a value as indented JSON.
func PrintJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// printLine prints a value as JSON in one line, so that programs can read it line by line.
func printLine(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false) // it is for terminals and programs, not for pages
	return enc.Encode(v)
}
