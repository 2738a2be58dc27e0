package crash_test

import (
	"slices"
	"strings"
	"testing"
)

// The ledger must find what it is there to find.
func TestLedger_judge(t *testing.T) {
	l := newLedger()
	var ids []string
	for n := range 4 {
		u := l.send(1, n)
		l.wrote(u)
		l.end(u, n != 2) // the third is never acknowledged
		ids = append(ids, u.id)
	}
	for name, tc := range map[string]struct {
		seen []int
		want string
	}{
		"all":                               {seen: []int{0, 1, 2, 3}},
		"all but the unacknowledged one":    {seen: []int{0, 1, 3}},
		"the unacknowledged one comes late": {seen: []int{0, 1, 3, 2}},
		"one is missing":                    {seen: []int{0, 2, 3}, want: ids[1] + " was acknowledged and never came"},
		"one came twice":                    {seen: []int{0, 1, 2, 3, 1}, want: ids[1] + " came twice"},
		"out of order":                      {seen: []int{1, 0, 3}, want: ids[1] + " came before " + ids[0]},
		"an unacknowledged one too early":   {seen: []int{2, 0, 1, 3}, want: ids[2] + " came before " + ids[0]},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			for _, i := range tc.seen {
				seen = append(seen, ids[i])
			}
			wrong := l.judge(seen)
			if tc.want == "" && len(wrong) > 0 || tc.want != "" && !slices.ContainsFunc(wrong, func(w string) bool { return strings.HasPrefix(w, tc.want) }) {
				t.Errorf("wrong = %q, want %q", wrong, tc.want)
			}
		})
	}
	if wrong := l.judge(append(slices.Clone(ids), "p99-1")); len(wrong) != 1 || wrong[0] != "p99-1 was never published" {
		t.Errorf("wrong = %q", wrong)
	}
}
