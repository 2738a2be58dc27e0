package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// comparison is one row of two hubs' results.
type comparison struct {
	Scenario string  `json:"scenario"`
	Phase    string  `json:"phase,omitempty"`
	Unit     string  `json:"unit"`
	This     float64 `json:"this"`   // median
	Versus   float64 `json:"versus"` // median
	Ratio    float64 `json:"ratio"`  // of the medians
	Low      float64 `json:"low"`    // of the ratios of all pairs
	High     float64 `json:"high"`
}

// leading gives the number that a result is about.
func (r *result) leading() (v float64, unit string) {
	switch {
	case r.HubEach > 0:
		return r.HubEach / (1 << 10), "KiB per subscriber"
	case r.Scenario == "connect":
		return r.ConnectedRate, "connections/s"
	case r.Scenario == "replay" && r.Last > 0 && r.Phase != "everything":
		return r.Last, "ms"
	case r.DeliveredRate > 0:
		return r.DeliveredRate, "deliveries/s"
	default:
		return r.PublishedRate, "publications/s"
	}
}

// compare runs a scenario on two hubs in turn, several times, and writes what both have in common.
func (o *options) compare(ctx context.Context, name string, out *report) error {
	type key struct{ phase, unit string }
	var order []key
	values := map[key]*[2][]float64{}
	for range o.times {
		for side, start := range []string{o.start, o.versus} {
			one := *o
			one.start, one.https = start, o.https && (side == 0 || !o.plain)
			results := report{w: io.Discard, keep: true}
			if err := one.scenario(ctx, name, &results); err != nil {
				return fmt.Errorf("%s: %w", start, err)
			}
			for _, r := range results.kept {
				if r.broken() {
					out.add(r) // a number says nothing when something was lost
				}
				v, unit := r.leading()
				if v <= 0 {
					continue // nothing was measured, and there is no ratio to nothing
				}
				k := key{r.Phase, unit}
				if values[k] == nil {
					values[k] = &[2][]float64{}
					order = append(order, k)
				}
				values[k][side] = append(values[k][side], v)
			}
		}
	}
	for _, k := range order {
		v := values[k]
		if len(v[0]) != o.times || len(v[1]) != o.times {
			continue // one of them cannot do it
		}
		c := comparison{Scenario: name, Phase: k.phase, Unit: k.unit}
		var ratios []float64
		for i := range v[0] {
			ratios = append(ratios, v[0][i]/v[1][i])
		}
		c.Low, c.High = slices.Min(ratios), slices.Max(ratios)
		c.This, c.Versus = median(v[0]), median(v[1])
		c.Ratio = c.This / c.Versus
		if err := c.write(out); err != nil {
			return err
		}
	}
	return nil
}

func (c *comparison) write(out *report) error {
	if out.json {
		return json.NewEncoder(out.w).Encode(c)
	}
	name := c.Scenario
	if c.Phase != "" {
		name += ", " + c.Phase
	}
	_, err := fmt.Fprintf(out.w, "%s: ratio %.2f (%.2f to %.2f): %.4g to %.4g %s\n", name, c.Ratio, c.Low, c.High, c.This, c.Versus, c.Unit)
	return err
}
