package token_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// tokenCase changes a good token and says at which check it is then refused; "" for accepted.
type tokenCase struct {
	name   string
	header object
	claims object
	want   token.Check
}

func runCases(t *testing.T, cases []tokenCase) {
	t.Helper()
	v := newVerifier(t, options(t))
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			compact := compact(header().with(c.header).String(), claims().with(c.claims).String(), "ES256", ecKey())
			_, err := v.Verify(t.Context(), compact, rar.Subscribe)
			wantCheck(t, err, c.want)
		})
	}
}

func TestVerify_Header(t *testing.T) {
	t.Parallel()
	runCases(t, []tokenCase{
		{name: "TOK-01 accepts at+jwt"},
		{name: "TOK-01 refuses JWT", header: object{"typ": `"JWT"`}, want: token.CheckTyp},
		{name: "TOK-01 refuses no typ", header: object{"typ": ""}, want: token.CheckTyp},
		{name: "TOK-01 refuses id_token", header: object{"typ": `"id_token"`}, want: token.CheckTyp},
		{name: "TOK-01 refuses dpop+jwt", header: object{"typ": `"dpop+jwt"`}, want: token.CheckTyp},
		{name: "TOK-01 refuses at+jwt2", header: object{"typ": `"at+jwt2"`}, want: token.CheckTyp},
		{name: "TOK-01 refuses a typ with a space", header: object{"typ": `"at+jwt "`}, want: token.CheckTyp},
		{name: "TOK-01 refuses a typ that is no string", header: object{"typ": `["at+jwt"]`}, want: token.CheckTyp},
		{name: "TOK-01 refuses a null typ", header: object{"typ": `null`}, want: token.CheckTyp},
		{name: "TOK-02 accepts application/at+jwt", header: object{"typ": `"application/at+jwt"`}},
		{name: "TOK-02 accepts AT+JWT", header: object{"typ": `"AT+JWT"`}},
		{name: "TOK-02 accepts Application/At+Jwt", header: object{"typ": `"Application/At+Jwt"`}},
		{name: "TOK-02 refuses x/at+jwt", header: object{"typ": `"x/at+jwt"`}, want: token.CheckTyp},
		{name: "TOK-03 refuses an unknown alg", header: object{"alg": `"ES256K"`}, want: token.CheckAlg},
		{name: "TOK-03 refuses another case", header: object{"alg": `"es256"`}, want: token.CheckAlg},
		{name: "TOK-03 refuses no alg", header: object{"alg": ""}, want: token.CheckAlg},
		{name: "TOK-03 refuses an empty alg", header: object{"alg": `""`}, want: token.CheckAlg},
		{name: "TOK-03 refuses an alg that is no string", header: object{"alg": `256`}, want: token.CheckAlg},
		{name: "TOK-03 refuses an encryption algorithm", header: object{"alg": `"RSA-OAEP"`}, want: token.CheckAlg},
		{name: "TOK-04 refuses none", header: object{"alg": `"none"`}, want: token.CheckAlg},
		{name: "TOK-04 refuses None", header: object{"alg": `"None"`}, want: token.CheckAlg},
		{name: "TOK-04 refuses NONE", header: object{"alg": `"NONE"`}, want: token.CheckAlg},
		{name: "TOK-04 refuses nOnE", header: object{"alg": `"nOnE"`}, want: token.CheckAlg},
		{name: "TOK-05 refuses an alg the named key is not for", header: object{"alg": `"RS256"`}, want: token.CheckKey},
		{name: "TOK-05 refuses an alg no key is for", header: object{"alg": `"HS256"`}, want: token.CheckKey},
		{name: "TOK-11 accepts an unknown kid of a key given by hand", header: object{"kid": `"?"`}},
		{name: "TOK-11 accepts no kid", header: object{"kid": ""}},
		{name: "TOK-11 accepts an empty kid", header: object{"kid": `""`}},
		{name: "TOK-11 accepts an odd kid", header: object{"kid": `"../../etc/passwd\u0000'\" OR 1=1"`}},
		{name: "TOK-11 refuses a kid that is no string", header: object{"kid": `{"a":1}`}, want: token.CheckKey},
		{name: "TOK-11 refuses the kid of another key", header: object{"kid": `"as-pub"`}, want: token.CheckKey},
		{name: "TOK-22 refuses crit", header: object{"crit": `["x"]`, "x": `1`}, want: token.CheckCrit},
		{name: "TOK-22 refuses an empty crit", header: object{"crit": `[]`}, want: token.CheckCrit},
		{name: "TOK-22 refuses b64", header: object{"crit": `["b64"]`, "b64": `false`}, want: token.CheckCrit},
		{name: "TOK-22 refuses b64 without crit", header: object{"b64": `false`}, want: token.CheckCrit},
		{name: "TOK-22 ignores unknown members", header: object{"x": `{"deep":[1,2,{"y":null}]}`}},
	})
}

func TestVerify_Claims(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) string { return seconds(start.Add(d)) }
	runCases(t, []tokenCase{
		{name: "TOK-14 refuses an expired token", claims: object{"exp": at(-time.Hour)}, want: token.CheckExp},
		{name: "TOK-14 refuses a token at its exp", claims: object{"exp": at(0)}, want: token.CheckExp},
		{name: "TOK-14 accepts a token a second before its exp", claims: object{"exp": at(time.Second)}},
		{name: "TOK-15 refuses no exp", claims: object{"exp": ""}, want: token.CheckExp},
		{name: "TOK-15 refuses a null exp", claims: object{"exp": "null"}, want: token.CheckExp},
		{name: "TOK-15 refuses a string exp", claims: object{"exp": quoted(at(time.Hour))}, want: token.CheckExp},
		{name: "TOK-15 refuses an object exp", claims: object{"exp": "{}"}, want: token.CheckExp},
		{name: "TOK-15 refuses a boolean exp", claims: object{"exp": "true"}, want: token.CheckExp},
		{name: "TOK-15 refuses an exp beyond all numbers", claims: object{"exp": "1e999"}, want: token.CheckExp},
		{name: "TOK-15 refuses an exp beyond all dates", claims: object{"exp": "1e18"}, want: token.CheckExp},
		{name: "TOK-15 refuses a negative exp", claims: object{"exp": "-1"}, want: token.CheckExp},
		{name: "TOK-15 accepts a fractional exp", claims: object{"exp": at(time.Minute) + ".75"}},
		{name: "TOK-15 accepts an exp with an exponent", claims: object{"exp": "9e9"}},
		{name: "TOK-16 refuses a future nbf", claims: object{"nbf": at(31 * time.Second)}, want: token.CheckNbf},
		{name: "TOK-16 accepts an nbf within the leeway", claims: object{"nbf": at(30 * time.Second)}},
		{name: "TOK-16 accepts a past nbf", claims: object{"nbf": at(-time.Hour)}},
		{name: "TOK-16 refuses a string nbf", claims: object{"nbf": quoted(at(0))}, want: token.CheckNbf},
		{name: "TOK-16 refuses a null nbf", claims: object{"nbf": "null"}, want: token.CheckNbf},
		{name: "TOK-16 refuses a future iat", claims: object{"iat": at(31 * time.Second)}, want: token.CheckIat},
		{name: "TOK-16 accepts an iat within the leeway", claims: object{"iat": at(30 * time.Second)}},
		{name: "TOK-16 refuses a string iat", claims: object{"iat": quoted(at(0))}, want: token.CheckIat},
		{name: "TOK-17 accepts aud as a string"},
		{name: "TOK-17 accepts aud as an array of one", claims: object{"aud": `["` + hubURL + `"]`}},
		{name: "TOK-17 accepts aud among others", claims: object{"aud": `["https://other.example","` + hubURL + `"]`}},
		{name: "TOK-18 refuses no aud", claims: object{"aud": ""}, want: token.CheckAud},
		{name: "TOK-18 refuses an empty aud", claims: object{"aud": `""`}, want: token.CheckAud},
		{name: "TOK-18 refuses another aud", claims: object{"aud": `"https://other.example"`}, want: token.CheckAud},
		{name: "TOK-18 refuses a prefix", claims: object{"aud": `"https://hub.example"`}, want: token.CheckAud},
		{name: "TOK-18 refuses a trailing slash", claims: object{"aud": quoted(hubURL + "/")}, want: token.CheckAud},
		{name: "TOK-18 refuses an upper-case host", claims: object{"aud": `"https://HUB.example/.well-known/mercure"`}, want: token.CheckAud},
		{name: "TOK-18 refuses an array without it", claims: object{"aud": `["a","b"]`}, want: token.CheckAud},
		{name: "TOK-18 refuses an empty array", claims: object{"aud": `[]`}, want: token.CheckAud},
		{name: "TOK-18 refuses a nested array", claims: object{"aud": `[["` + hubURL + `"]]`}, want: token.CheckAud},
		{name: "TOK-18 refuses an array with a number", claims: object{"aud": `["` + hubURL + `",1]`}, want: token.CheckAud},
		{name: "TOK-18 refuses an object", claims: object{"aud": `{}`}, want: token.CheckAud},
		{name: "TOK-19 refuses no iss", claims: object{"iss": ""}, want: token.CheckIss},
		{name: "TOK-19 refuses an unknown iss", claims: object{"iss": `"https://evil.example"`}, want: token.CheckIss},
		{name: "TOK-19 refuses a trailing slash", claims: object{"iss": quoted(asIssuer + "/")}, want: token.CheckIss},
		{name: "TOK-19 refuses another case", claims: object{"iss": `"https://AS.example"`}, want: token.CheckIss},
		{name: "TOK-19 refuses an array", claims: object{"iss": `["` + asIssuer + `"]`}, want: token.CheckIss},
		{name: "TOK-20 accepts no sub, client_id, iat and jti", claims: object{"sub": "", "client_id": "", "iat": "", "jti": ""}},
		{name: "TOK-20 refuses a sub that is no string", claims: object{"sub": "1"}, want: token.CheckPayload},
		{name: "TOK-20 accepts a grant_id of somebody else's", claims: object{"grant_id": "1"}},
		{name: "TOK-22 refuses names that differ in case", claims: object{"exp": "", "Exp": at(time.Hour)}, want: token.CheckExp},
		{name: "TOK-24 refuses a token bound to a key", claims: object{"cnf": `{"jkt":"0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}`}, want: token.CheckCnf},
		{name: "TOK-24 refuses a null cnf", claims: object{"cnf": `null`}, want: token.CheckCnf},
	})
}

func TestVerify_Form(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, options(t))
	token1 := good()
	seg := strings.Split(token1, ".")
	sign := func(header, payload string) string { return compact(header, payload, "ES256", ecKey()) }
	h, c := header().String(), claims().String()
	// The last digit of a signature of 64 bytes has four bits to spare: 15 further spellings of the same bytes.
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, token1[len(token1)-1])
	for _, c := range []struct {
		name, token string
		want        token.Check
	}{
		{"AUTH-05 accepts the compact form", token1, ""},
		{"AUTH-05 refuses an opaque string", "c2VjcmV0", token.CheckForm},
		{"AUTH-05 refuses nothing at all", "", token.CheckForm},
		{"AUTH-05 refuses two dots", "..", token.CheckHeader},
		{"AUTH-05 refuses a JWE", token1 + ".a.b", token.CheckForm},
		{"AUTH-05 refuses four segments", token1 + ".", token.CheckForm},
		{"AUTH-05 refuses the JSON serialisation", `{"payload":"` + seg[1] + `","signatures":[]}`, token.CheckForm},
		{"AUTH-05 refuses a scheme in front", "Bearer " + token1, token.CheckForm},
		{"TOK-04 refuses none without signature", b64([]byte(header().with(object{"alg": `"none"`}).String())) + "." + seg[1] + ".", token.CheckAlg},
		{"TOK-04 refuses none with a copied signature", b64([]byte(header().with(object{"alg": `"nOne"`}).String())) + "." + seg[1] + "." + seg[2], token.CheckAlg},
		{"TOK-21 refuses another payload", seg[0] + "." + b64([]byte(claims().with(object{"sub": `"root"`}).String())) + "." + seg[2], token.CheckSignature},
		{"TOK-21 refuses another header", b64([]byte(header().with(object{"x": `1`}).String())) + "." + seg[1] + "." + seg[2], token.CheckSignature},
		{"TOK-21 refuses another signature", seg[0] + "." + seg[1] + "." + b64(make([]byte, 64)), token.CheckSignature},
		{"TOK-21 refuses a truncated signature", seg[0] + "." + seg[1] + "." + seg[2][:40], token.CheckSignature},
		{"TOK-21 refuses an empty signature", seg[0] + "." + seg[1] + ".", token.CheckSignature},
		{"TOK-21 refuses a second spelling of the signature", token1[:len(token1)-1] + string(alphabet[last^1]), token.CheckForm},
		{"TOK-22 refuses padding", seg[0] + "." + seg[1] + "." + seg[2] + "==", token.CheckForm},
		{"TOK-22 refuses plain base64", seg[0] + "." + seg[1] + "." + seg[2][:20] + "+/" + seg[2][22:], token.CheckForm},
		{"TOK-22 refuses a line end", seg[0] + "\n." + seg[1] + "." + seg[2], token.CheckForm},
		{"TOK-22 refuses a line end behind", token1 + "\r\n", token.CheckForm},
		{"TOK-22 refuses a space behind", token1 + " ", token.CheckForm},
		{"TOK-22 refuses a header that is an array", sign("["+h+"]", c), token.CheckHeader},
		{"TOK-22 refuses bad JSON in the header", sign(h[:len(h)-1], c), token.CheckHeader},
		{"TOK-22 refuses text behind the header", sign(h+"{}", c), token.CheckHeader},
		{"TOK-22 refuses a repeated header member", sign(`{"alg":"ES256",`+h[1:], c), token.CheckHeader},
		{"TOK-22 refuses a header member repeated by an escape", sign(`{"\u0061lg":"ES256",`+h[1:], c), token.CheckHeader},
		{"TOK-22 refuses a payload that is an array", sign(h, "["+c+"]"), token.CheckPayload},
		{"TOK-22 refuses a payload that is a string", sign(h, quoted(c)), token.CheckPayload},
		{"TOK-22 refuses an empty payload", sign(h, ""), token.CheckPayload},
		{"TOK-22 refuses bad JSON in the payload", sign(h, c+","), token.CheckPayload},
		{"TOK-22 refuses a byte order mark", sign(h, "\ufeff"+c), token.CheckPayload},
		{"TOK-22 refuses bytes that are not UTF-8", sign(h, `{"x":"`+"\xff"+`",`+c[1:]), token.CheckPayload},
		{"TOK-22 refuses half a surrogate", sign(h, `{"x":"\ud800",`+c[1:]), token.CheckPayload},
		{"TOK-22 refuses a repeated claim", sign(h, `{"exp":9999999999,`+c[1:]), token.CheckPayload},
		{"LIM-10 refuses a token beyond 8 KiB", sign(h, `{"x":"`+strings.Repeat("x", 8<<10)+`",`+c[1:]), token.CheckSize},
		{"LIM-10 accepts a token below 8 KiB", sign(h, `{"x":"`+strings.Repeat("x", 5<<10)+`",`+c[1:]), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := v.Verify(t.Context(), c.token, rar.Subscribe)
			wantCheck(t, err, c.want)
		})
	}
}

func TestVerify_Keys(t *testing.T) {
	var requests atomic.Int32
	listener := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Cleanup(listener.Close)
	stranger := must(token.SigningKey{ID: "x", Algorithm: "ES256", Material: ec2Key()}.Public())
	embedded := string(must(stranger.PublicJWK()))
	location := quoted(listener.URL + "/keys")
	v := newVerifier(t, options(t))
	for _, c := range []struct {
		name     string
		header   object
		claims   object
		alg      string
		key      any
		endpoint rar.Action
		want     token.Check
	}{
		{name: "TOK-06 accepts ES256", header: object{"kid": `"as1"`}, alg: "ES256", key: ecKey()},
		{name: "TOK-06 accepts EdDSA", header: object{"kid": `"as2"`}, alg: "EdDSA", key: edKey()},
		{name: "TOK-06 accepts EdDSA by its newer name", header: object{"kid": `"as2"`}, alg: "Ed25519", key: edKey()},
		{name: "TOK-06 accepts RS256", header: object{"kid": `"as3"`}, alg: "RS256", key: rsaKey()},
		{name: "TOK-05 refuses PS256 with an RS256 key", header: object{"kid": `"as3"`}, alg: "PS256", key: rsaKey(), want: token.CheckKey},
		{name: "TOK-05 refuses RS512 with an RS256 key", header: object{"kid": `"as3"`}, alg: "RS512", key: rsaKey(), want: token.CheckKey},
		{name: "TOK-08 refuses an unknown key", alg: "ES256", key: ec2Key(), want: token.CheckSignature},
		{name: "TOK-09 refuses an embedded jwk", header: object{"jwk": embedded}, alg: "ES256", key: ec2Key(), want: token.CheckSignature},
		{name: "TOK-10 refuses jku", header: object{"jku": location}, alg: "ES256", key: ec2Key(), want: token.CheckSignature},
		{name: "TOK-10 refuses x5u", header: object{"x5u": location}, alg: "ES256", key: ec2Key(), want: token.CheckSignature},
		{name: "TOK-10 refuses x5c", header: object{"x5c": `["MIIB"]`}, alg: "ES256", key: ec2Key(), want: token.CheckSignature},
		{name: "TOK-10 ignores jku of a good token", header: object{"jku": location}, alg: "ES256", key: ecKey()},
		{name: "TOK-11 refuses an untrusted key under an unknown kid", header: object{"kid": `"?"`}, alg: "ES256", key: ec2Key(), want: token.CheckSignature},
		{
			name: "TOK-13 refuses the key of another issuer", claims: object{"iss": quoted(shop)},
			alg: "ES256", key: ecKey(), want: token.CheckKey,
		},
		{
			name: "TOK-13 refuses the reverse", header: object{"kid": `"sub"`},
			alg: "ES384", key: ec384Key(), want: token.CheckKey,
		},
		{
			name: "TOK-13 accepts the issuer's own key", header: object{"kid": `"sub"`}, claims: object{"iss": quoted(shop)},
			alg: "ES384", key: ec384Key(),
		},
		{
			name: "TOK-26 accepts a publisher key at the publishing endpoint", header: object{"kid": `"pub"`},
			claims: object{"iss": quoted(shop), "authorization_details": detail("publish", "*")},
			alg:    "HS256", key: publisherSecret, endpoint: rar.Publish,
		},
		{
			name: "TOK-26 refuses a publisher key at the subscribing endpoint", header: object{"kid": `"pub"`},
			claims: object{"iss": quoted(shop), "authorization_details": detail("publish", "*")},
			alg:    "HS256", key: publisherSecret, want: token.CheckKeyActions,
		},
		{
			name: "TOK-26 refuses a publisher key without details at the subscribing endpoint", header: object{"kid": `"pub"`},
			claims: object{"iss": quoted(shop), "authorization_details": ""},
			alg:    "HS256", key: publisherSecret, want: token.CheckKeyActions,
		},
		{
			name: "TOK-26 refuses a publish detail signed by the subscriber key", header: object{"kid": `"sub"`},
			claims: object{"iss": quoted(shop), "authorization_details": detail("publish", "*")},
			alg:    "ES384", key: ec384Key(), endpoint: rar.Publish, want: token.CheckKeyActions,
		},
		{
			name: "TOK-26 refuses a publish detail signed by the subscriber key also where nobody asks for it", header: object{"kid": `"sub"`},
			claims: object{"iss": quoted(shop), "authorization_details": detail("publish", "*")},
			alg:    "ES384", key: ec384Key(), want: token.CheckKeyActions,
		},
		{
			name: "TOK-26 accepts a self-issued token where there is no endpoint", header: object{"kid": `"pub"`},
			claims: object{"iss": quoted(shop), "authorization_details": detail("publish", "*")},
			alg:    "HS256", key: publisherSecret, endpoint: "none",
		},
		{
			name: "PRIV-08 accepts an authorization server's token that lacks the action", header: object{"kid": `"as-pub"`},
			claims: object{"authorization_details": detail("publish", "*")}, alg: "ES512", key: ec521Key(),
		},
		{
			name: "TOK-26 refuses an authorization server's token beyond its key", header: object{"kid": `"as-pub"`},
			alg: "ES512", key: ec521Key(), want: token.CheckKeyActions,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := header().with(object{"alg": quoted(c.alg)}).with(c.header)
			endpoint := c.endpoint
			if c.endpoint == "" {
				endpoint = rar.Subscribe
			}
			if c.endpoint == "none" {
				endpoint = ""
			}
			_, err := v.Verify(t.Context(), compact(h.String(), claims().with(c.claims).String(), c.alg, c.key), endpoint)
			wantCheck(t, err, c.want)
		})
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("TOK-10: %d requests arrived at the address in the token, want none", n)
	}
}

func TestVerify_Result(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, options(t))
	payload := claims().with(object{
		"sid": `"s1"`, "grant_id": `"g1"`, "preferred_username": `"ada"`,
		"nbf": seconds(start), "aud": `["https://other.example","` + hubURL + `"]`,
	})
	got, err := v.Verify(t.Context(), compact(header().String(), payload.String(), "ES256", ecKey()), rar.Subscribe)
	if err != nil {
		t.Fatal(err)
	}
	grants := got.Grants
	if grants == nil || len(grants.Matchers(rar.Subscribe)) != 1 || grants.Actions() != rar.Actions(rar.Subscribe) {
		t.Errorf("Grants = %v, want one matcher for subscribing", grants)
	}
	got.Grants = nil
	for _, at := range []*time.Time{&got.IssuedAt, &got.NotBefore, &got.ExpiresAt} {
		*at = at.UTC()
	}
	want := &token.Claims{
		Issuer: asIssuer, Subject: "u_1", ClientID: "app", ID: "t1", SessionID: "s1", GrantID: "g1", Username: "ada",
		Audience: []string{"https://other.example", hubURL},
		IssuedAt: start, NotBefore: start, ExpiresAt: start.Add(10 * time.Minute),
		Details:                 got.Details,
		FromAuthorizationServer: true, KeyID: "as1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Verify() differs (-want +got):\n%s", diff)
	}
	if len(got.Details) != 1 || got.Details[0].Topics[0].Match != "https://example.com/a" {
		t.Errorf("Details = %v, want the one of the token", got.Details)
	}
}

func TestInvalidError(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, options(t))
	iss := "https://evil.example/\u202e" + strings.Repeat("x", 1000)
	_, err := v.Verify(t.Context(), compact(header().String(), claims().with(object{"iss": quoted(iss)}).String(), "ES256", ecKey()), "")
	wantCheck(t, err, token.CheckIss)
	text := err.Error()
	if !strings.HasPrefix(text, `token: iss: "https://evil.example/\u202exxx`) || !strings.HasSuffix(text, `x…" is not a trusted issuer`) || len(text) > 200 {
		t.Errorf("Error() = %s, want the check and a short, escaped reason", text)
	}
}

func TestNewVerifier_Refuses(t *testing.T) {
	t.Parallel()
	static := func(k token.Key) token.KeySource { return token.Static(k) }
	es := token.Key{ID: "a", Algorithm: "ES256", Material: &ecKey().PublicKey}
	for _, c := range []struct {
		name   string
		change func(*token.Options)
	}{
		{"no resource", func(o *token.Options) { o.Resource = "" }},
		{"no compiler", func(o *token.Options) { o.Compiler = nil }},
		{"a negative size", func(o *token.Options) { o.MaxBytes = -1 }},
		{"an issuer without id", func(o *token.Options) { o.Issuers = []token.Issuer{{Keys: static(es)}} }},
		{"an issuer without keys", func(o *token.Options) { o.Issuers = []token.Issuer{{ID: "a"}} }},
		{"an issuer twice", func(o *token.Options) { o.Issuers = append(o.Issuers, token.Issuer{ID: shop, Keys: token.Static()}) }},
		{"TOK-12 a key of two issuers", func(o *token.Options) {
			o.Issuers = append(o.Issuers, token.Issuer{ID: "b", Keys: static(token.Key{ID: "b", Algorithm: "ES256", Material: &ecKey().PublicKey})})
		}},
		{"TOK-12 a secret of two issuers", func(o *token.Options) {
			o.Issuers = append(o.Issuers, token.Issuer{ID: "b", Keys: static(token.Key{Algorithm: "HS256", Material: publisherSecret})})
		}},
		{"a key that does not fit its algorithm", func(o *token.Options) {
			o.Issuers = []token.Issuer{{ID: "a", Keys: static(token.Key{Algorithm: "RS256", Material: &ecKey().PublicKey})}}
		}},
		{"a short secret", func(o *token.Options) {
			o.Issuers = []token.Issuer{{ID: "a", Keys: static(token.Key{Algorithm: "HS512", Material: publisherSecret})}}
		}},
		{"a private key", func(o *token.Options) {
			o.Issuers = []token.Issuer{{ID: "a", Keys: static(token.Key{Algorithm: "ES256", Material: ecKey()})}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			c.change(&o)
			if _, err := token.NewVerifier(o); err == nil {
				t.Error("NewVerifier() accepts the options, want an error")
			}
		})
	}
}

func TestStatic_JoinsEqualKeys(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Issuers = []token.Issuer{{ID: asIssuer, Keys: token.Static(
		token.Key{Algorithm: "ES256", Material: &ecKey().PublicKey, Actions: rar.Actions(rar.Publish)},
		token.Key{Algorithm: "ES256", Material: &ecKey().PublicKey, Actions: rar.Actions(rar.Subscribe)},
	)}}
	v := newVerifier(t, o)
	both := `[{"type":"` + rar.DetailType + `","actions":["publish","subscribe"],"topics":[{"match":"*"}]}]`
	compact := compact(header().String(), claims().with(object{"authorization_details": both}).String(), "ES256", ecKey())
	for _, endpoint := range []rar.Action{rar.Publish, rar.Subscribe} {
		_, err := v.Verify(t.Context(), compact, endpoint)
		wantCheck(t, err, "")
	}
}
