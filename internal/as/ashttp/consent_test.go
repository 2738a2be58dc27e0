package ashttp_test

import (
	"net/http"
	"net/url"
	"testing"
)

// TestConsent_isOfOnePerson goes back to the sign-in page after somebody agreed, as a shared machine allows.
func TestConsent_isOfOnePerson(t *testing.T) {
	s := newServer(t, nil)
	_, err := s.accounts.Create(t.Context(), "bob", password, []string{"user"})
	must(t, err)
	chat := `[{"type":"https://mercure.rocks/authorization-detail","actions":["subscribe"],"topics":[{"match":"https://example.com/chat"}]}]`
	for name, between := range map[string]func(b *browser, consent url.Values){
		"on the sign-in page": func(*browser, url.Values) {},
		"after switching the account": func(b *browser, consent url.Values) {
			consent.Set("answer", "switch")
			if r := b.post("/consent", consent); r.StatusCode != http.StatusOK {
				t.Fatalf("switch: %d", r.StatusCode)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := s.newBrowser()
			login := b.open(request(set("authorization_details", chat)))
			consent := formOf(b.signIn(login, "ann", password).body)
			consent.Set("answer", "allow")
			if r := b.post("/consent", consent); r.StatusCode != http.StatusOK {
				t.Fatalf("consent: %d", r.StatusCode)
			}
			between(b, consent)
			// Nobody has followed the page that moves on; somebody else signs in.
			if r := b.signIn(login, "bob", password); r.Request.URL.Path != "/consent" {
				t.Errorf("bob was not asked: %d %s", r.StatusCode, r.Header.Get("Location"))
			}
		})
	}
}
