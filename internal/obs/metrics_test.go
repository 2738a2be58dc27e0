package obs_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/cinnabar-hub/cinnabar/internal/obs"
)

func useAll(m *obs.Metrics) {
	m.Subscribers(2)
	m.Subscribers(-1)
	m.Published()
	m.Announced(2)
	m.Delivered(3)
	m.Replayed(4)
	m.Dropped(5)
	m.Cut("write_timeout")
	m.RequestRefused("publish", "no_token", 401)
	m.RevocationsKnown("https://auth.example.com", 6)
	m.RevocationsApplied("https://auth.example.com", 7)
	m.RevocationsRead("https://auth.example.com", time.UnixMilli(8500))
	m.StreamsRevoked("https://auth.example.com", 9)
}

func TestMetrics_documentedNamesAreTheRealOnes(t *testing.T) {
	r := prometheus.NewRegistry()
	m, err := obs.NewMetrics(r)
	if err != nil {
		t.Fatal(err)
	}
	useAll(m)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []obs.Metric
	for _, f := range families {
		d := obs.Metric{Name: f.GetName(), Help: f.GetHelp(), Type: obs.Counter}
		if f.GetMetric()[0].GetGauge() != nil {
			d.Type = obs.Gauge
		}
		for _, l := range f.GetMetric()[0].GetLabel() {
			d.Labels = append(d.Labels, l.GetName())
		}
		got = append(got, d)
	}
	want := obs.HubMetrics()
	slices.SortFunc(want, func(a, b obs.Metric) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("documented and gathered metrics differ (-documented +gathered):\n%s", diff)
	}
	problems, err := testutil.GatherAndLint(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("lint: %s: %s", p.Metric, p.Text)
	}
}

func TestMetricsTable(t *testing.T) {
	table := obs.MetricsTable()
	for _, m := range obs.HubMetrics() {
		if !strings.Contains(table, "| `"+m.Name+"` | "+string(m.Type)+" | ") {
			t.Errorf("table lacks %s:\n%s", m.Name, table)
		}
	}
	if got, want := strings.Count(table, "\n"), len(obs.HubMetrics())+2; got != want {
		t.Errorf("table has %d lines, want %d", got, want)
	}
}

func TestMetrics_count(t *testing.T) {
	r := prometheus.NewRegistry()
	m, err := obs.NewMetrics(r)
	if err != nil {
		t.Fatal(err)
	}
	useAll(m)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, f := range families {
		v := f.GetMetric()[0]
		got[f.GetName()] = v.GetCounter().GetValue() + v.GetGauge().GetValue()
	}
	want := map[string]float64{
		"cinnabar_hub_subscription_events_total": 2,
		"cinnabar_hub_subscribers":               1,
		"cinnabar_hub_updates_published_total":   1,
		"cinnabar_hub_events_delivered_total":    3,
		"cinnabar_hub_events_replayed_total":     4,
		"cinnabar_hub_events_dropped_total":      5,
		"cinnabar_hub_streams_cut_total":         1,
		"cinnabar_hub_requests_refused_total":    1,

		"cinnabar_hub_revocations":                           6,
		"cinnabar_hub_revocation_log_position":               7,
		"cinnabar_hub_revocation_log_read_timestamp_seconds": 8.5,
		"cinnabar_hub_streams_revoked_total":                 9,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values differ (-want +got):\n%s", diff)
	}
}

func TestMetrics_registeringTwiceIsAnError(t *testing.T) {
	r := prometheus.NewRegistry()
	if _, err := obs.NewMetrics(r); err != nil {
		t.Fatal(err)
	}
	if _, err := obs.NewMetrics(r); err == nil {
		t.Error("NewMetrics on the same registry = nil error, want one")
	}
}

func TestMetrics_doNotAllocateWhenHot(t *testing.T) {
	m, err := obs.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		m.Subscribers(1)
		m.Published()
		m.Announced(2)
		m.Delivered(1)
		m.Replayed(1)
		m.Dropped(1)
		m.Cut("expired")
	}); n != 0 {
		t.Errorf("allocations per round = %v, want 0", n)
	}
}
