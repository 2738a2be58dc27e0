package as

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ory/fosite"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// recordingStore counts what is recorded.
type recordingStore struct {
	store.Store

	recorded int
}

func (s *recordingStore) RecordToken(context.Context, store.IssuedToken) error {
	s.recorded++
	return nil
}

// TestPipeline_noGrantCanForget takes steps out of the way of a grant: without any of them there is no token.
func TestPipeline_noGrantCanForget(t *testing.T) {
	st := &recordingStore{}
	s := &Server{store: st, options: Options{Issuer: "https://as.example"}}
	grants := ownGrants{server: s, storage: storage{server: s}, tokens: accessTokens{server: s}}
	request := func(sess *session) *fosite.AccessRequest {
		r := fosite.NewAccessRequest(sess)
		r.GrantTypes = fosite.Arguments{GrantClientCredentials}
		r.Client = fositeClient{client: store.Client{ID: "c"}}
		return r
	}
	t.Run("the details", func(t *testing.T) {
		ctx, w := withWork(t.Context())
		answer := fosite.NewAccessResponse()
		err := grants.PopulateTokenEndpointResponse(ctx, request(&session{Subject: "c", Resource: "r"}), answer)
		if err == nil || !strings.Contains(err.Error(), "no details") || answer.GetAccessToken() != "" || w.recorded {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the token to record", func(t *testing.T) {
		ctx, w := withWork(t.Context())
		if err := grants.storage.Commit(ctx); err == nil || w.recorded || st.recorded != 0 {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the unit of work", func(t *testing.T) {
		if err := grants.storage.Commit(t.Context()); err == nil || st.recorded != 0 {
			t.Errorf("got %v", err)
		}
		if _, err := grants.storage.BeginTX(t.Context()); err == nil {
			t.Error("a transaction outside of one")
		}
	})
	t.Run("to record a token once", func(t *testing.T) {
		ctx, w := withWork(t.Context())
		sess := &session{Subject: "c", issuing: issuing{expiresAt: time.Now().Add(time.Minute)}}
		if err := grants.storage.CreateAccessTokenSession(ctx, "jti", request(sess)); err != nil {
			t.Fatal(err)
		}
		if err := grants.storage.Commit(ctx); err != nil || !w.recorded || st.recorded != 1 {
			t.Errorf("got %v", err)
		}
		if err := grants.storage.Commit(ctx); err == nil || st.recorded != 1 {
			t.Errorf("again: %v", err)
		}
	})
	t.Run("the client", func(t *testing.T) {
		for _, h := range []fosite.TokenEndpointHandler{grants, detailsHandler{server: s}} {
			if h.CanSkipClientAuth(t.Context(), request(&session{})) {
				t.Errorf("%T skips it", h)
			}
		}
		if _, err := authenticatedClient(t.Context(), nil, nil); err == nil {
			t.Error("a client that nobody authenticated")
		}
		anonymous := request(&session{})
		anonymous.Client = nil
		if err := grants.HandleTokenEndpointRequest(t.Context(), anonymous); err == nil {
			t.Error("a proof without a client")
		}
	})
	t.Run("a public client does not act for itself, even if it was let through", func(t *testing.T) {
		r := request(&session{})
		r.Client = fositeClient{client: store.Client{ID: "c", AuthMethod: AuthNone}}
		if err := grants.HandleTokenEndpointRequest(t.Context(), r); tokenError(err).Code != CodeUnauthorizedClient {
			t.Errorf("got %v", err)
		}
	})
}
