package authzcli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/cli"
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

// outcome is what a command says of what it revoked or deleted.
type outcome struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// print prints it; verb, for people alone, is what was done.
func (o outcome) print(env cli.Env, verb string, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(env.Stdout, o)
	}
	_, err := fmt.Fprintf(env.Stdout, "%s %s %s\n", verb, o.Kind, o.ID)
	return err
}
