package ashttp_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/account"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

func cookieOf(r reply) *http.Cookie {
	for _, c := range r.Cookies() {
		if strings.Contains(c.Name, "cinnabar_login") {
			return c
		}
	}
	return nil
}

func TestLogin_cookie(t *testing.T) {
	s := newServer(t, nil)
	b := s.newBrowser()
	first := cookieOf(b.get("/authorize?" + request().Encode()))
	if first == nil || first.Name != "__Host-cinnabar_login" || !first.Secure || !first.HttpOnly || first.Path != "/" ||
		first.Domain != "" || first.SameSite != http.SameSiteLaxMode || first.MaxAge != 0 {
		t.Fatalf("cookie: %+v", first)
	}
	page := b.open(request())
	form := formOf(page.body)
	form.Set("username", "ann")
	form.Set("password", password)
	second := cookieOf(b.post("/login", form))
	if second == nil || second.Value == first.Value {
		t.Fatalf("the session identifier was not renewed: %+v", second)
	}
	b.signIn(b.open(request(set("prompt", "login"))), "ann", password)
	t.Run("the store has no secret of it", func(t *testing.T) {
		for secret := range strings.SplitSeq(second.Value, ".") {
			if _, err := s.store.BrowserSession(t.Context(), secret); err == nil {
				t.Error("a secret is a key of the store")
			}
		}
	})
}

func TestLogin_refusals(t *testing.T) {
	s := newServer(t, nil)
	for name, tc := range map[string]struct{ username, password string }{
		"a wrong password":  {"ann", "hunter2"},
		"an unknown name":   {"bob", password},
		"an empty password": {"ann", ""},
		"a name with a NUL": {"ann\x00", password},
	} {
		t.Run(name+" shows the form again", func(t *testing.T) {
			b := s.newBrowser()
			r := b.signIn(b.open(request()), tc.username, tc.password)
			if r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(r.body, "The user name or password is wrong.") ||
				!strings.Contains(r.body, "<title>Error: Sign in") {
				t.Errorf("got %d\n%s", r.StatusCode, r.body)
			}
			if tc.password != "" && strings.Contains(r.body, tc.password) {
				t.Error("the page repeats the password")
			}
			if r := b.signIn(r, "ANN", password); r.Request.URL.Path != "/consent" {
				t.Errorf("then the right ones: %d %s", r.StatusCode, r.Request.URL)
			}
		})
	}
	t.Run("too many attempts", func(t *testing.T) {
		b := s.newBrowser()
		page := b.open(request())
		var r reply
		for range 12 {
			r = b.signIn(page, "mallory", "wrong")
		}
		if r.StatusCode != http.StatusTooManyRequests || r.Header.Get("Retry-After") == "" || !strings.Contains(r.body, "too many attempts") {
			t.Errorf("got %d\n%s", r.StatusCode, r.body)
		}
	})
	t.Run("a disabled account is like a wrong password", func(t *testing.T) {
		_, err := s.accounts.Update(t.Context(), s.ann.ID, func(a *store.Account) { a.Disabled = true })
		must(t, err)
		b := s.newBrowser()
		if r := b.signIn(b.open(request()), "ann", password); r.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("got %d", r.StatusCode)
		}
	})
	if !slices.Contains(s.events(), as.EventLoginFailed) {
		t.Error("no audit record")
	}
}

func TestForms_areOurs(t *testing.T) {
	s := newServer(t, nil)
	b := s.newBrowser()
	page := b.open(request())
	form := func(change ...func(url.Values)) url.Values {
		f := formOf(page.body)
		f.Set("username", "ann")
		f.Set("password", password)
		for _, c := range change {
			c(f)
		}
		return f
	}
	send := func(f url.Values, header ...string) reply {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, issuer+"/login", strings.NewReader(f.Encode()))
		must(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return b.do(r)
	}
	for name, r := range map[string]reply{
		"without Origin":             send(form()),
		"of another origin":          send(form(), "Origin", "https://evil.example"),
		"of an opaque origin":        send(form(), "Origin", "null"),
		"of http":                    send(form(), "Origin", "http://as.example"),
		"of another port":            send(form(), "Origin", "https://as.example:8443"),
		"with a foreign Referer":     send(form(), "Referer", "https://evil.example/login"),
		"with a Referer that starts": send(form(), "Referer", "https://as.example.evil.example/"),
		"with two different origins": send(form(), "Origin", "https://evil.example", "Referer", issuer+"/login"),
		"without its token":          send(form(del("form_token")), "Origin", issuer),
		"with another token":         send(form(set("form_token", strings.Repeat("A", 43))), "Origin", issuer),
	} {
		if r.StatusCode != http.StatusForbidden || cookieOf(r) != nil {
			t.Errorf("a form %s: %d", name, r.StatusCode)
		}
	}
	if r := send(form(), "Origin", issuer, "Content-Type", "text/plain"); r.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("a form in plain text: %d", r.StatusCode)
	}
	t.Run("another interaction's token does not fit", func(t *testing.T) {
		other := formOf(b.open(request()).body)
		if r := send(form(set("form_token", other.Get("form_token"))), "Origin", issuer); r.StatusCode != http.StatusForbidden {
			t.Errorf("got %d", r.StatusCode)
		}
	})
	t.Run("a Referer will do where there is no Origin", func(t *testing.T) {
		if r := send(form(), "Referer", issuer+"/login?interaction=x"); r.StatusCode != http.StatusOK {
			t.Errorf("got %d", r.StatusCode)
		}
	})
}

func TestInteraction_belongsToItsBrowser(t *testing.T) {
	s := newServer(t, nil)
	attacker := s.newBrowser()
	page := attacker.open(request(set("client_id", "broker")))
	link := page.Request.URL.String()
	interaction := page.Request.URL.Query().Get(as.ParamInteraction)

	victim := s.newBrowser()
	victim.signIn(victim.open(request(set("client_id", "broker"))), "ann", password).sent(t, callback)
	for name, r := range map[string]reply{
		"the link, by somebody who is signed in": victim.get(link),
		"the link, by a fresh browser":           s.newBrowser().get(link),
		"the way back, by somebody signed in":    victim.get("/authorize?interaction=" + interaction),
		"the form, by somebody else":             victim.post("/login", formOf(page.body)),
		"the consent page":                       victim.get("/consent?interaction=" + interaction),
		"the consent form":                       victim.post("/consent", formOf(page.body)),
	} {
		if r.StatusCode != http.StatusForbidden || strings.Contains(r.Header.Get("Location"), "code=") {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.Header.Get("Location"))
		}
	}
	t.Run("and the attacker gains nothing from it", func(t *testing.T) {
		if r := attacker.open(url.Values{as.ParamInteraction: {interaction}}); r.Request.URL.Path != "/login" {
			t.Errorf("got %s %s", r.Request.URL, r.Header.Get("Location"))
		}
	})
	for name, target := range map[string]string{
		"an unknown interaction":            "/login?interaction=" + strings.Repeat("A", 43),
		"no interaction":                    "/login",
		"a malformed one":                   "/consent?interaction=x",
		"an interaction with other things":  "/authorize?interaction=" + interaction + "&client_id=spa",
		"an interaction named twice":        "/authorize?interaction=" + interaction + "&interaction=" + interaction,
		"an interaction with a redirect":    "/authorize?interaction=" + interaction + "&redirect_uri=" + callback,
		"an unknown interaction's way back": "/authorize?interaction=" + strings.Repeat("A", 43),
	} {
		if r := attacker.get(target); r.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", name, r.StatusCode)
		}
	}
}

func TestInteraction_endsOnce(t *testing.T) {
	s := newServer(t, nil)
	b := s.newBrowser()
	page := b.signIn(b.open(request()), "ann", password)
	interaction := page.Request.URL.Query().Get(as.ParamInteraction)
	b.answer(page, "allow").sent(t, callback)
	if r := b.get("/authorize?interaction=" + interaction); r.StatusCode != http.StatusBadRequest {
		t.Errorf("again: %d %s", r.StatusCode, r.Header.Get("Location"))
	}
	if r := b.answer(page, "allow"); r.StatusCode != http.StatusBadRequest {
		t.Errorf("the form again: %d", r.StatusCode)
	}
}

func TestInteraction_inTwoTabs(t *testing.T) {
	s := newServer(t, nil)
	b := s.newBrowser()
	one, two := b.open(request(set("state", "one"))), b.open(request(set("state", "two")))
	first := b.answer(b.signIn(one, "ann", password), "allow").sent(t, callback)
	second := b.answer(b.signIn(two, "ann", password), "allow").sent(t, callback)
	if first.Get("state") != "one" || second.Get("state") != "two" || first.Get("code") == second.Get("code") {
		t.Errorf("answers: %v %v", first, second)
	}
	grants, err := s.store.ListGrants(t.Context(), store.GrantFilter{AccountID: s.ann.ID})
	must(t, err)
	if len(grants) != 2 || grants[0].SessionID != grants[1].SessionID {
		t.Errorf("signing in again as the same person must keep the session: %+v", grants)
	}
}

func TestConsent(t *testing.T) {
	s := newServer(t, nil)
	t.Run("deny tells the client", func(t *testing.T) {
		b := s.newBrowser()
		q := b.answer(b.signIn(b.open(request()), "ann", password), "deny").sent(t, callback)
		if q.Get("error") != "access_denied" || q.Get("iss") != issuer || q.Get("state") == "" {
			t.Errorf("answer: %v", q)
		}
		if !slices.Contains(s.events(), as.EventConsentDenied) {
			t.Error("no audit record")
		}
	})
	t.Run("an answer that is none is refused", func(t *testing.T) {
		b := s.newBrowser()
		if r := b.answer(b.signIn(b.open(request()), "ann", password), "maybe"); r.StatusCode != http.StatusBadRequest {
			t.Errorf("got %d", r.StatusCode)
		}
	})
	t.Run("the page cannot be skipped", func(t *testing.T) {
		b := s.newBrowser()
		page := b.signIn(b.open(request()), "ann", password)
		r := b.open(url.Values{as.ParamInteraction: {page.Request.URL.Query().Get(as.ParamInteraction)}})
		if r.Request.URL.Path != "/consent" {
			t.Errorf("got %s %s", r.Request.URL, r.Header.Get("Location"))
		}
	})
	t.Run("another account can be chosen", func(t *testing.T) {
		_, err := s.accounts.Create(t.Context(), "bob", password, []string{"user"})
		must(t, err)
		b := s.newBrowser()
		page := b.answer(b.signIn(b.open(request()), "ann", password), "switch")
		if page.Request.URL.Path != "/login" {
			t.Fatalf("page: %s", page.Request.URL)
		}
		page = b.signIn(page, "bob", password)
		if !strings.Contains(page.body, "<dd>bob</dd>") {
			t.Errorf("page:\n%s", page.body)
		}
		b.answer(page, "allow").sent(t, callback)
	})
	t.Run("agreeing holds for what was shown, and for who saw it", func(t *testing.T) {
		b := s.newBrowser()
		page := b.signIn(b.open(request()), "ann", password)
		form := formOf(page.body)
		form.Set("answer", "allow")
		b.post("/consent", form) // and does not go on
		b.signIn(b.open(request(set("prompt", "login"))), "bob", password)
		r := b.open(url.Values{as.ParamInteraction: {form.Get("interaction")}})
		if r.Request.URL.Path != "/consent" || !strings.Contains(r.body, "<dd>bob</dd>") {
			t.Errorf("another account goes on: %s %s", r.Request.URL, r.Header.Get("Location"))
		}
	})
	t.Run("whoever signed out meanwhile signs in again", func(t *testing.T) {
		b := s.newBrowser()
		page := b.signIn(b.open(request()), "ann", password)
		b.answer(b.open(request()), "switch") // in another tab
		if r := b.answer(page, "allow"); r.Request.URL.Path != "/login" {
			t.Errorf("got %d %s", r.StatusCode, r.Request.URL)
		}
	})
}

func TestDemo(t *testing.T) {
	dev := func(o *as.Options) { o.Dev, o.DemoUser = true, "demo" }
	demo := func(b *browser, page reply) reply {
		form := formOf(page.body)
		form.Set("method", "demo")
		return b.follow(b.post("/login", form))
	}
	t.Run("one click signs in", func(t *testing.T) {
		s := newServer(t, dev)
		_, err := s.accounts.Add(t.Context(), account.Draft{Username: "demo", Roles: []string{"user"}, Demo: true})
		must(t, err)
		b := s.newBrowser()
		page := b.open(request(set("client_id", "broker")))
		if !strings.Contains(page.body, "Continue as demo") {
			t.Errorf("page:\n%s", page.body)
		}
		demo(b, page).sent(t, callback)
	})
	t.Run("only an account that is marked for it", func(t *testing.T) {
		s := newServer(t, func(o *as.Options) { o.Dev, o.DemoUser = true, "ann" })
		b := s.newBrowser()
		if r := demo(b, b.open(request())); r.StatusCode != http.StatusForbidden {
			t.Errorf("got %d", r.StatusCode)
		}
	})
	t.Run("only in development", func(t *testing.T) {
		s := newServer(t, nil)
		_, err := s.accounts.Add(t.Context(), account.Draft{Username: "demo", Demo: true})
		must(t, err)
		b := s.newBrowser()
		page := b.open(request())
		if strings.Contains(page.body, "demo") {
			t.Error("the page offers it")
		}
		if r := demo(b, page); r.StatusCode != http.StatusForbidden {
			t.Errorf("got %d", r.StatusCode)
		}
	})
	t.Run("a developer learns what is wrong with a request", func(t *testing.T) {
		s := newServer(t, dev)
		r := s.newBrowser().get("/authorize?" + request(set("redirect_uri", "https://x.example/<b>")).Encode())
		if !strings.Contains(r.body, "“https://x.example/&lt;b&gt;” is not registered for the client “spa”") {
			t.Errorf("page:\n%s", r.body)
		}
	})
}

func TestFaces_shareAStoreAndNothingElse(t *testing.T) {
	s := newServer(t, nil)
	b := s.newBrowser()
	b.signIn(b.open(request(set("client_id", "broker"))), "ann", password)
	two := s.sibling("https://as2.example")
	other := &browser{t: t, s: two, client: &http.Client{Transport: two, CheckRedirect: b.client.CheckRedirect}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://as2.example/authorize?"+request(set("client_id", "broker")).Encode(), http.NoBody)
	must(t, err)
	u, err := url.Parse(issuer)
	must(t, err)
	for _, c := range b.client.Jar.Cookies(u) {
		r.AddCookie(c)
	}
	if got := other.do(r); !strings.HasPrefix(got.Header.Get("Location"), "/login?") {
		t.Errorf("a session of one issuer is good at another: %s", got.Header.Get("Location"))
	}
}
