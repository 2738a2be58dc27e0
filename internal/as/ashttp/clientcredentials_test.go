package ashttp_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

func (s *server) clientCredentials(client string, change ...func(url.Values)) tokenReply {
	s.t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}}
	for _, c := range change {
		c(form)
	}
	return s.token(form, credentials(client))
}

func TestClientCredentials(t *testing.T) {
	s := tokenServer(t)
	own := detail("publish", "https://example.com/backend/*", topic.URLPattern)
	t.Run("gives the client for itself what policy gives it", func(t *testing.T) {
		r := s.clientCredentials("backend")
		if r.status != http.StatusOK || r.Refresh != "" || r.Scope != nil || r.header.Get("Cache-Control") != "no-store" {
			t.Fatalf("got %+v\n%s", r, s.logs)
		}
		claims := s.verify(r.AccessToken)
		if claims.Subject != "backend" || claims.ClientID != "backend" || claims.GrantID != "" || claims.SessionID != "" || claims.Username != "" {
			t.Errorf("claims: %+v", claims)
		}
		details := string(r.Details)
		if !strings.Contains(details, "/backend/*") || !strings.Contains(details, "/jobs") || strings.Contains(details, "/of/") || strings.Contains(details, "users") {
			t.Errorf("details: %s", details)
		}
		if len(allGrants(t, s)) != 0 {
			t.Error("left a grant")
		}
		issued, err := s.store.IssuedToken(t.Context(), claims.ID)
		if err != nil || issued.Subject != "backend" || issued.GrantID != "" || !issued.ExpiresAt.Equal(claims.ExpiresAt) {
			t.Errorf("trace: %+v, %v", issued, err)
		}
		if last := s.lastRecord(); last.Event != as.EventToken || last.Details["jti"] != claims.ID || last.Details["grant_type"] != "client_credentials" {
			t.Errorf("audit record: %+v", last)
		}
	})
	t.Run("narrows by details and by scope", func(t *testing.T) {
		if r := s.clientCredentials("backend", set("authorization_details", own), set("resource", hubURL)); string(r.Details) != own {
			t.Errorf("details: %+v", r)
		}
		jobs := detail("publish", "https://example.com/jobs", "")
		if r := s.clientCredentials("backend", set("scope", "jobs openid")); string(r.Details) != jobs || r.Scope == nil || *r.Scope != "jobs" {
			t.Errorf("scope: %+v", r)
		}
	})
	for name, tc := range map[string]struct {
		client string
		change []func(url.Values)
		status int
		want   string
	}{
		"another topic":           {"backend", []func(url.Values){set("authorization_details", detail("publish", "https://example.com/other", ""))}, 400, "invalid_authorization_details"},
		"another action":          {"backend", []func(url.Values){set("authorization_details", detail("subscribe", "https://example.com/backend/x", ""))}, 400, "invalid_authorization_details"},
		"what people may have":    {"backend", []func(url.Values){set("authorization_details", detail("subscribe", "https://example.com/chat", ""))}, 400, "invalid_authorization_details"},
		"malformed details":       {"backend", []func(url.Values){set("authorization_details", "[")}, 400, "invalid_authorization_details"},
		"a scope with nothing":    {"backend", []func(url.Values){set("scope", "live")}, 400, "invalid_scope"},
		"another resource":        {"backend", []func(url.Values){set("resource", "https://other.example")}, 400, "invalid_target"},
		"two resources":           {"backend", []func(url.Values){add("resource", hubURL), add("resource", "https://other.example")}, 400, "invalid_target"},
		"a client without policy": {"stray", nil, 400, "unauthorized_client"},
		"without policy, asking":  {"stray", []func(url.Values){set("authorization_details", own)}, 400, "invalid_authorization_details"},
		"a client without grant":  {"web", nil, 400, "unauthorized_client"},
		"a public client":         {"spa", []func(url.Values){set("client_id", "spa")}, 400, "unauthorized_client"},
		"nobody":                  {"nobody", nil, 401, "invalid_client"},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			if r := s.clientCredentials(tc.client, tc.change...); r.status != tc.status || r.Error != tc.want || r.AccessToken != "" {
				t.Errorf("got %d %s, want %d %s", r.status, r.Error, tc.status, tc.want)
			}
		})
	}
	t.Run("DECISION-14 refuses excess also where policy trims people's, and gives nothing unasked where it says that", func(t *testing.T) {
		s := s.reload(func(o *as.Options) {
			last := &o.Policies[len(o.Policies)-1]
			last.OnExcess, last.OnMissingRequest = as.ExcessTrim, as.MissingDeny
		})
		r := s.clientCredentials("backend", set("authorization_details", detail("publish", "https://example.com/*", topic.URLPattern)))
		if r.status != http.StatusBadRequest || r.Error != "invalid_authorization_details" {
			t.Errorf("more than the client may have: %+v", r)
		}
		if r := s.clientCredentials("backend"); r.Error != "unauthorized_client" {
			t.Errorf("unasked: %+v", r)
		}
	})
	t.Run("needs to be told the resource when there are several", func(t *testing.T) {
		s := s.reload(func(o *as.Options) { o.Resources = append(o.Resources, as.Resource{ID: "https://two.example/hub"}) })
		if r := s.clientCredentials("backend"); r.Error != "invalid_target" {
			t.Errorf("got %+v", r)
		}
		if r := s.clientCredentials("backend", set("resource", hubURL)); r.status != http.StatusOK {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("a token that is too long for a header is not made", func(t *testing.T) {
		s := s.reload(func(o *as.Options) {
			for range 60 {
				o.Policies[len(o.Policies)-1].Grant = append(o.Policies[len(o.Policies)-1].Grant, rar.Detail{
					Actions: []rar.Action{rar.Publish}, Topics: []rar.TopicMatcher{{Match: "https://example.com/" + strings.Repeat("x", 100), MatchType: topic.Exact}},
				})
			}
		})
		if r := s.clientCredentials("backend"); r.Error != "invalid_authorization_details" {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("a client that was deleted meanwhile gets nothing", func(t *testing.T) {
		s := tokenServer(t)
		deleting := &deletingStore{Store: s.store, s: s}
		s.store = deleting
		s.start()
		deleting.armed = true
		if r := s.clientCredentials("backend"); r.Error != "invalid_grant" || r.AccessToken != "" {
			t.Errorf("got %+v", r)
		}
		if !slices.Contains(s.log(), "client:backend") {
			t.Errorf("log: %v", s.log())
		}
	})
}

// lastRecord is the newest record of the audit trail.
func (s *server) lastRecord() store.AuditRecord {
	s.t.Helper()
	records, err := s.store.ListAudit(s.t.Context(), 1)
	must(s.t, err)
	if len(records) == 0 {
		s.t.Fatal("no audit record")
	}
	return records[0]
}
