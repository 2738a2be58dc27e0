package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// result is what one measurement gave. Times are milliseconds where the name does not say otherwise.
type result struct {
	Scenario    string  `json:"scenario"`
	Phase       string  `json:"phase,omitempty"`
	Subscribers int     `json:"subscribers"`
	Publishers  int     `json:"publishers,omitempty"`
	Bytes       int     `json:"data_bytes,omitempty"`
	Seconds     float64 `json:"seconds"`

	Acknowledged int64 `json:"acknowledged"`
	Expected     int64 `json:"expected"`
	Delivered    int64 `json:"delivered"`

	PublishedRate float64 `json:"published_per_s,omitempty"`
	DeliveredRate float64 `json:"delivered_per_s,omitempty"`
	ConnectedRate float64 `json:"connected_per_s,omitempty"`
	Publish       *quant  `json:"publish_ms,omitempty"`
	Delivery      *quant  `json:"delivery_ms,omitempty"`
	Beside        *beside `json:"to_without_stalled,omitempty"` // ratios
	First         float64 `json:"first_event_ms,omitempty"`     // replay: from connecting to the first update, median
	Last          float64 `json:"last_event_ms,omitempty"`      // and to the last

	HubCPU      float64 `json:"hub_cpu_s,omitempty"`
	HubResident int64   `json:"hub_resident_bytes,omitempty"`
	HubEach     float64 `json:"hub_resident_bytes_per_subscriber,omitempty"`
	OwnCPU      float64 `json:"own_cpu_s,omitempty"`

	Lost      int64  `json:"lost"`
	Repeated  int64  `json:"repeated"`
	Late      int64  `json:"out_of_order"`
	Stray     int64  `json:"stray"`
	Disagreed int64  `json:"other_order"` // subscribers that saw another order than most
	Refused   int64  `json:"refused"`     // publications without an acknowledgement
	Closed    int64  `json:"closed"`      // streams that the hub ended
	Note      string `json:"note,omitempty"`
}

// quant is the quantiles of times.
type quant struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// quantiles gives nil when nothing was counted.
func quantiles(h *histogram) *quant {
	if h.n == 0 {
		return nil
	}
	return &quant{P50: milliseconds(h.quantile(0.5)), P99: milliseconds(h.quantile(0.99)), Max: milliseconds(h.longest)}
}

// broken says whether anything is not as it should be.
func (r *result) broken() bool {
	return r.Lost != 0 || r.Repeated != 0 || r.Late != 0 || r.Stray != 0 || r.Disagreed != 0 || r.Refused != 0 || r.Closed != 0
}

// report writes results.
type report struct {
	json   bool
	keep   bool // results are kept and not written
	w      io.Writer
	kept   []result
	broken bool
	err    error
}

// add writes one result.
func (r *report) add(x result) {
	r.broken = r.broken || x.broken()
	if r.keep {
		r.kept = append(r.kept, x)
		return
	}
	if r.err != nil {
		return
	}
	if r.json {
		r.err = json.NewEncoder(r.w).Encode(x)
		return
	}
	r.err = x.text(r.w)
}

// code gives the exit code: what went wrong counts for more than what could not be tried after it.
func (r *report) code(otherwise int) int {
	if r.broken {
		return exitBroken
	}
	return otherwise
}

// close gives the first error of writing.
func (r *report) close() error { return r.err }

// text writes the result for people.
func (r *result) text(w io.Writer) error {
	name := r.Scenario
	if r.Phase != "" {
		name += ", " + r.Phase
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s: %d subscribers, %d publishers, %.2f s\n", name, r.Subscribers, r.Publishers, r.Seconds)
	row := func(there bool, name, format string, args ...any) {
		if there {
			fmt.Fprintf(t, "  %s\t"+format+"\n", append([]any{name}, args...)...)
		}
	}
	row(r.ConnectedRate > 0, "connected", "%.0f/s", r.ConnectedRate)
	row(r.Acknowledged > 0, "published", "%d (%.0f/s)", r.Acknowledged, r.PublishedRate)
	row(r.Expected > 0, "delivered", "%d of %d (%.0f/s)", r.Delivered, r.Expected, r.DeliveredRate)
	if q := r.Publish; q != nil {
		row(true, "publish latency", "p50 %.2f ms, p99 %.2f ms, longest %.2f ms", q.P50, q.P99, q.Max)
	}
	if q := r.Delivery; q != nil {
		row(true, "delivery latency", "p50 %.2f ms, p99 %.2f ms, longest %.2f ms", q.P50, q.P99, q.Max)
	}
	if b := r.Beside; b != nil {
		row(true, "to those before", "delivered a second × %.2f, delivery latency p50 × %.2f, p99 × %.2f", b.Delivered, b.P50, b.P99)
	}
	row(r.Last > 0, "from connecting", "to the first update %.2f ms, to the last %.2f ms", r.First, r.Last)
	row(r.HubResident > 0, "hub", "%.2f s CPU, %.1f MiB resident", r.HubCPU, float64(r.HubResident)/(1<<20))
	const telling = 10_000 // CPU time is told in steps of 10 ms: it says little about less
	row(r.HubCPU > 0 && r.Delivered >= telling, "", "%.2f s CPU per million deliveries", r.HubCPU/float64(r.Delivered)*1e6)
	row(r.HubCPU > 0 && r.Acknowledged >= telling, "", "%.0f µs CPU per publication", r.HubCPU/float64(r.Acknowledged)*1e6)
	row(r.HubEach > 0, "", "%.2f KiB resident per subscriber", r.HubEach/(1<<10))
	row(r.OwnCPU > 0, "this program", "%.2f s CPU", r.OwnCPU)
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "  %s\n\n", r.verdict())
	return err
}

// verdict says in a line what went wrong.
func (r *result) verdict() string {
	var wrong []string
	for _, c := range []struct {
		n    int64
		what string
	}{
		{r.Lost, "lost"},
		{r.Repeated, "repeated"},
		{r.Late, "out of order"},
		{r.Stray, "to the wrong subscriber"},
		{r.Disagreed, "subscribers with another order"},
		{r.Refused, "publications not acknowledged"},
		{r.Closed, "streams ended by the hub"},
	} {
		if c.n > 0 {
			wrong = append(wrong, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	text := "nothing lost, repeated or out of order"
	if len(wrong) > 0 {
		text = "FAILED: " + strings.Join(wrong, ", ")
	} else if r.Expected == 0 {
		text = "nothing went wrong"
	}
	if r.Note != "" {
		text += "; " + r.Note
	}
	return text
}
