package suite

import (
	"context"
	"encoding/json"

	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// Detect finds out which of the Choices a hub has, by asking it, and sets them with the name of the cookie. A hub that
// lacks something by mistake is taken for one that lacks it on purpose: who knows what the hub should have, says so.
func Detect(ctx context.Context, target *Target) error {
	if target.Features == nil {
		target.Features = map[Feature]bool{}
	}
	r, err := newRun(nil, target, Options{})
	if err != nil {
		return err
	}
	if err := r.ready(ctx); err != nil {
		return err
	}
	found := target.Features
	probes := []struct {
		name string
		run  func(*T)
	}{
		{"metadata", func(t *T) {
			resp, err := t.try(target.MetadataURL(), wire.Request{Method: "GET"})
			var meta struct {
				Cookie        string `json:"mercure_cookie"`
				Subscriptions bool   `json:"mercure_subscriptions"`
			}
			if err != nil || resp.Status != 200 || json.Unmarshal([]byte(resp.Body), &meta) != nil {
				return
			}
			found[Metadata], found[Subscriptions] = true, meta.Subscriptions
			if target.CookieName == "" {
				target.CookieName = meta.Cookie
			}
		}},
		{"anonymous", func(t *T) {
			found[Anonymous] = t.opens(t.Get("match=" + wire.Escape(t.Topic())))
		}},
		{"query", func(t *T) {
			found[QueryMethod] = t.opens(Bearer(t.Query("", "match="+wire.Escape(t.Topic())), t.SubscribeAll()))
		}},
		{"history", func(t *T) {
			topic := t.Topic()
			t.Publish("topic", topic, "data", "kept")
			s := t.ListenWith(Bearer(t.Get("last_event_id=earliest&match="+wire.Escape(topic)), t.SubscribeAll()))
			events := s.Events()
			found[History] = len(events) == 1 && events[0].Data == "kept"
		}},
	}
	for i, probe := range probes {
		// Each has a number of its own, and so topics of its own.
		if res := r.one(ctx, int64(i+1), Check{ID: "DETECT", Case: probe.name, Run: probe.run}); res.Status == Fail {
			return unready("asking for "+probe.name, res)
		}
	}
	found[Cookie] = target.CookieName != ""
	return nil
}

// opens says whether a request is answered with an event stream.
func (t *T) opens(r wire.Request) bool {
	resp, err := t.Try(r)
	return err == nil && resp.Stream != nil
}
