package suite

import "time"

// Status is how a check ended.
type Status string

// The statuses.
const (
	Pass Status = "PASS"
	Fail Status = "FAIL"
	Skip Status = "SKIP"
)

// Result is how a check ended, and what was seen.
type Result struct {
	Check    string        `json:"check"` // ID/case
	ID       string        `json:"id"`
	Area     string        `json:"area"`
	Level    Level         `json:"level"`
	Status   Status        `json:"status"`
	Observed string        `json:"observed"`
	Took     time.Duration `json:"took_ns"`
}

// Counts says whether the result, if it is a failure, is one for somebody who demands this class of levels and the
// stronger ones (nobody, when it is empty). What a hub MAY do never counts.
func (r Result) Counts(demand Level) bool {
	if r.Status != Fail || r.Level == May || demand == "" {
		return false
	}
	for _, class := range Classes() {
		if class == r.Level.Class() {
			return true
		}
		if class == demand {
			break
		}
	}
	return false
}

// Failures are the results that count.
func Failures(results []Result, demand Level) []Result {
	var failed []Result
	for _, r := range results {
		if r.Counts(demand) {
			failed = append(failed, r)
		}
	}
	return failed
}
