package authzcli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// printTable writes rows under a header, in columns.
func printTable(out io.Writer, header []string, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// moment prints an instant for people; the zero time is none.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// nonNil makes an absent list an empty one, which JSON shows as [].
func nonNil(list []string) []string { return append([]string{}, list...) }
