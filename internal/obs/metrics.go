package obs

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// MetricType is the kind of a metric.
type MetricType string

// The kinds of metrics in use.
const (
	Counter MetricType = "counter"
	Gauge   MetricType = "gauge"
)

// Metric documents one metric. The names are a contract with dashboards and alerts.
type Metric struct {
	// Name is the full name.
	Name string
	// Type is the kind.
	Type MetricType
	// Help is one sentence, also served with the metric.
	Help string
	// Labels are the label names, in order; their values come from small fixed sets.
	Labels []string
}

// Names of the metrics.
const (
	metricSubscribers = "cinnabar_hub_subscribers"
	metricPublished   = "cinnabar_hub_updates_published_total"
	metricAnnounced   = "cinnabar_hub_subscription_events_total"
	metricDelivered   = "cinnabar_hub_events_delivered_total"
	metricReplayed    = "cinnabar_hub_events_replayed_total"
	metricDropped     = "cinnabar_hub_events_dropped_total"
	metricCut         = "cinnabar_hub_streams_cut_total"
	metricRefused     = "cinnabar_hub_requests_refused_total"

	metricRevocations        = "cinnabar_hub_revocations"
	metricRevocationPosition = "cinnabar_hub_revocation_log_position"
	metricRevocationRead     = "cinnabar_hub_revocation_log_read_timestamp_seconds"
	metricRevoked            = "cinnabar_hub_streams_revoked_total"
)

// labelSource names a revocation log by the issuers whose tokens it revokes.
const labelSource = "source"

// HubMetrics lists the metrics of the hub: what NewMetrics registers, no more and no less. Those of the Go runtime and the
// process (NewRegistry) come on top. The list is a copy.
func HubMetrics() []Metric {
	return []Metric{
		{metricSubscribers, Gauge, "Open event streams.", nil},
		{metricPublished, Counter, "Updates that the history has acknowledged.", nil},
		{metricAnnounced, Counter, "Events of subscriptions that began or ended, which the history has acknowledged.", nil},
		{metricDelivered, Counter, "Events queued live for readers, counted once per reader.", nil},
		{metricReplayed, Counter, "Events queued for readers from the history, counted once per reader.", nil},
		{metricDropped, Counter, "Events that left a slow reader's queue unsent; the reader gets them from the history.", nil},
		{metricCut, Counter, "Streams that the hub ended against the reader's wish.", []string{"reason"}},
		{metricRefused, Counter, "Requests that were refused.", []string{"endpoint", "reason", "status"}},
		{metricRevocations, Gauge, "Revocations in force.", []string{labelSource}},
		{metricRevocationPosition, Gauge, "Sequence number through which the revocation log has been applied.", []string{labelSource}},
		{metricRevocationRead, Gauge, "When the revocation log was last read to its end, in seconds since 1970; time() less this is the age of what the hub knows.", []string{labelSource}},
		{metricRevoked, Counter, "Streams that were closed because their token was revoked.", []string{labelSource}},
	}
}

// MetricsTable returns the metrics of the hub as a Markdown table, for the documentation.
func MetricsTable() string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, m := range HubMetrics() {
		b.WriteString("| `" + m.Name + "` | " + string(m.Type) + " | " + strings.Join(m.Labels, ", ") + " | " + m.Help + " |\n")
	}
	return b.String()
}

// Metrics counts for the hub, its edge and its revocation lists: it satisfies the metrics ports of all three. It is safe for concurrent use and never
// blocks.
type Metrics struct {
	subscribers prometheus.Gauge
	published   prometheus.Counter
	announced   prometheus.Counter
	delivered   prometheus.Counter
	replayed    prometheus.Counter
	dropped     prometheus.Counter
	cut         *prometheus.CounterVec
	refused     *prometheus.CounterVec

	revocations, revocationPosition, revocationRead *prometheus.GaugeVec
	revoked                                         *prometheus.CounterVec
}

// NewMetrics registers the metrics of the hub with r.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	gauges := make(map[string]prometheus.Gauge)
	counters := make(map[string]prometheus.Counter)
	vectors := make(map[string]*prometheus.CounterVec)
	gaugeVectors := make(map[string]*prometheus.GaugeVec)
	for _, m := range HubMetrics() {
		var c prometheus.Collector
		switch {
		case m.Type == Gauge && len(m.Labels) > 0:
			gaugeVectors[m.Name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.Name, Help: m.Help}, m.Labels)
			c = gaugeVectors[m.Name]
		case m.Type == Gauge:
			gauges[m.Name] = prometheus.NewGauge(prometheus.GaugeOpts{Name: m.Name, Help: m.Help})
			c = gauges[m.Name]
		case len(m.Labels) == 0:
			counters[m.Name] = prometheus.NewCounter(prometheus.CounterOpts{Name: m.Name, Help: m.Help})
			c = counters[m.Name]
		default:
			vectors[m.Name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
			c = vectors[m.Name]
		}
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register %s: %w", m.Name, err)
		}
	}
	return &Metrics{
		subscribers: gauges[metricSubscribers],
		published:   counters[metricPublished],
		announced:   counters[metricAnnounced],
		delivered:   counters[metricDelivered],
		replayed:    counters[metricReplayed],
		dropped:     counters[metricDropped],
		cut:         vectors[metricCut],
		refused:     vectors[metricRefused],

		revocations:        gaugeVectors[metricRevocations],
		revocationPosition: gaugeVectors[metricRevocationPosition],
		revocationRead:     gaugeVectors[metricRevocationRead],
		revoked:            vectors[metricRevoked],
	}, nil
}

// NewRegistry returns a registry with the metrics of the Go runtime and of the process.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector(),
	)
	return r
}

// Subscribers changes the number of open streams by delta.
func (m *Metrics) Subscribers(delta int) { m.subscribers.Add(float64(delta)) }

// Published counts an update that the history has acknowledged.
func (m *Metrics) Published() { m.published.Inc() }

// Announced counts n events of subscriptions that the history has acknowledged.
func (m *Metrics) Announced(n int) { m.announced.Add(float64(n)) }

// Delivered counts n events queued live for readers.
func (m *Metrics) Delivered(n int) { m.delivered.Add(float64(n)) }

// Replayed counts n events queued for readers from the history.
func (m *Metrics) Replayed(n int) { m.replayed.Add(float64(n)) }

// Dropped counts n events that left a slow reader's queue unsent.
func (m *Metrics) Dropped(n int) { m.dropped.Add(float64(n)) }

// Cut counts a stream that the hub ended against the reader's wish.
func (m *Metrics) Cut(reason string) { m.cut.WithLabelValues(reason).Inc() }

// RequestRefused counts an answer of status 400 or above.
func (m *Metrics) RequestRefused(endpoint, reason string, status int) {
	m.refused.WithLabelValues(endpoint, reason, strconv.Itoa(status)).Inc()
}

// RevocationsKnown tells the number of revocations in force. Source, here and below, comes from configuration and is bounded by it.
func (m *Metrics) RevocationsKnown(source string, entries int) {
	m.revocations.WithLabelValues(source).Set(float64(entries))
}

// RevocationsApplied tells the sequence number through which a revocation log has been applied.
func (m *Metrics) RevocationsApplied(source string, seq int64) {
	m.revocationPosition.WithLabelValues(source).Set(float64(seq))
}

// RevocationsRead tells when a revocation log was last read to its end.
func (m *Metrics) RevocationsRead(source string, at time.Time) {
	m.revocationRead.WithLabelValues(source).Set(float64(at.UnixMilli()) / 1000)
}

// RevocationsLeft tells that a revocation log is followed no longer: the age of what is known of it means nothing any more.
func (m *Metrics) RevocationsLeft(source string) {
	for _, g := range []*prometheus.GaugeVec{m.revocations, m.revocationPosition, m.revocationRead} {
		g.DeleteLabelValues(source)
	}
}

// StreamsRevoked counts streams that were closed because their token was revoked.
func (m *Metrics) StreamsRevoked(source string, n int) {
	m.revoked.WithLabelValues(source).Add(float64(n))
}
