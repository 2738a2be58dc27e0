package session

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/securecookie"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

const (
	securePrefix = "__Secure-"
	hostPrefix   = "__Host-"

	hubCookieBase     = "mercure_access_token"
	loginCookieBase   = "cinnabar_login"
	sessionCookieBase = "cinnabar_session"

	// loginLifetime is how long a person may take to sign in.
	loginLifetime = 10 * time.Minute
	// maxLogins bounds the sign-ins one browser has under way. Each costs a cookie on every request to the host.
	maxLogins = 3
	// maxCookieBytes is what browsers keep of name and value together.
	maxCookieBytes = 4096
	// signedOutLifetime is how long the empty hub cookie of a sign-out lives: long enough for streams of other tabs to come back
	// and be refused for good.
	signedOutLifetime = time.Minute
	// loginHashChars is how much of the state's hash a login cookie's name ends in: 64 bits and a rest.
	loginHashChars = 11
)

// loginState is the content of a login cookie. Its member names are short because cookies are.
type loginState struct {
	State    string `json:"s"`
	Verifier string `json:"v"`
	ReturnTo string `json:"r"`
	Issuer   string `json:"i"`
	Profile  string `json:"p"`
	Started  int64  `json:"t"` // Unix milliseconds
	// The session that this sign-in replaces. It is noted when the sign-in starts, because the callback comes
	// from another site and then carries no Strict cookie.
	PreviousSession string   `json:"ps,omitempty"`
	PreviousTokens  []string `json:"pt,omitempty"`
	PreviousRefresh string   `json:"pr,omitempty"`
}

// sessionState is the content of the session cookie.
type sessionState struct {
	Issuer    string   `json:"i"`
	Profile   string   `json:"p"`
	Subject   string   `json:"s"`
	Username  string   `json:"u,omitempty"`
	SessionID string   `json:"d,omitempty"`
	TokenIDs  []string `json:"j"`           // the last maxTokenIDs, the newest last
	Ends      int64    `json:"e"`           // the absolute end, Unix seconds
	Refresh   string   `json:"r,omitempty"` // the refresh token; empty: the session cannot be renewed
	Reads     bool     `json:"g,omitempty"` // its tokens may read private updates
}

// maxTokenIDs is how many of a session's tokens are remembered: the current one, and the one before, whose streams may still be
// open.
const maxTokenIDs = 2

// over says whether the session's absolute end has passed.
func (s *sessionState) over(now time.Time) bool { return !now.Before(time.Unix(s.Ends, 0)) }

// owns says whether a token belongs to the session.
func (s *sessionState) owns(claims *token.Claims) bool {
	return s.Issuer == claims.Issuer && slices.Contains(s.TokenIDs, claims.ID)
}

// with returns the session with a token more.
func (s *sessionState) with(tokenID string) *sessionState {
	next := *s
	next.TokenIDs = slices.DeleteFunc(slices.Clone(s.TokenIDs), func(id string) bool { return id == tokenID })
	if tokenID != "" {
		next.TokenIDs = append(next.TokenIDs, tokenID)
	}
	if n := len(next.TokenIDs); n > maxTokenIDs {
		next.TokenIDs = next.TokenIDs[n-maxTokenIDs:]
	}
	return &next
}

// cookies names, seals, sets and expires the broker's cookies. It is immutable.
type cookies struct {
	hubName, hubPath, domain string
	loginPrefix, sessionName string
	secure                   bool
	idle                     time.Duration
	loginCodecs              []securecookie.Codec
	sessionCodecs            []securecookie.Codec
}

func newCookies(o Options, hubPath string) *cookies {
	prefix := hostPrefix
	if o.InsecureCookie {
		prefix = ""
	}
	suffix := brokerSuffix(o.CookieName)
	return &cookies{
		hubName:       o.CookieName,
		hubPath:       hubPath,
		domain:        o.CookieDomain,
		loginPrefix:   prefix + loginCookieBase + suffix + "_",
		sessionName:   prefix + sessionCookieBase + suffix,
		secure:        !o.InsecureCookie,
		idle:          o.Idle,
		loginCodecs:   newCodecs(o.CookieKeys, loginLifetime),
		sessionCodecs: newCodecs(o.CookieKeys, o.Idle),
	}
}

// brokerSuffix is what keeps the broker cookies of several hubs on one host apart: whatever makes their hub
// cookies differ.
func brokerSuffix(hubCookie string) string {
	name := strings.TrimPrefix(hubCookie, securePrefix)
	if rest, ok := strings.CutPrefix(name, hubCookieBase); ok {
		return rest
	}
	return "-" + name
}

// newCodecs makes one codec for each key. securecookie's own defaults (30 days, gob) fit none of our cookies.
func newCodecs(keys [][]byte, maxAge time.Duration) []securecookie.Codec {
	pairs := make([][]byte, 0, 2*len(keys))
	for _, key := range keys {
		pairs = append(pairs, key[:CookieKeyBytes/2], key[CookieKeyBytes/2:])
	}
	codecs := securecookie.CodecsFromPairs(pairs...)
	for _, codec := range codecs {
		if sc, ok := codec.(*securecookie.SecureCookie); ok {
			sc.MaxAge(int(maxAge / time.Second)).MaxLength(maxCookieBytes).SetSerializer(securecookie.JSONEncoder{})
		}
	}
	return codecs
}

// loginName is the name of the login cookie of a state.
func (k *cookies) loginName(state string) string {
	sum := sha256.Sum256([]byte(state))
	return k.loginPrefix + base64.RawURLEncoding.EncodeToString(sum[:])[:loginHashChars]
}

// setLogin starts a sign-in: it seals s into a cookie of its own and drops the oldest ones beyond maxLogins.
func (k *cookies) setLogin(w http.ResponseWriter, r *http.Request, s *loginState) error {
	name := k.loginName(s.State)
	value, err := securecookie.EncodeMulti(name, s, k.loginCodecs...)
	if err != nil {
		return fmt.Errorf("seal login cookie: %w", err)
	}
	for _, old := range k.surplusLogins(r) {
		k.expireLogin(w, old)
	}
	http.SetCookie(w, k.broker(name, value, http.SameSiteLaxMode, loginLifetime))
	return nil
}

// surplusLogins names the login cookies that must go when one more is set: the unreadable ones, and the
// oldest of the others.
func (k *cookies) surplusLogins(r *http.Request) []string {
	type login struct {
		name    string
		started int64
	}
	var kept []login
	var surplus []string
	for _, c := range r.Cookies() {
		if !strings.HasPrefix(c.Name, k.loginPrefix) || len(c.Name) != len(k.loginPrefix)+loginHashChars {
			continue
		}
		var s loginState
		if securecookie.DecodeMulti(c.Name, c.Value, &s, k.loginCodecs...) != nil {
			surplus = append(surplus, c.Name)
			continue
		}
		kept = append(kept, login{c.Name, s.Started})
	}
	slices.SortFunc(kept, func(a, b login) int { return int(b.started - a.started) })
	for i := maxLogins - 1; i < len(kept); i++ {
		surplus = append(surplus, kept[i].name)
	}
	return surplus
}

// login opens the login cookie of a state.
func (k *cookies) login(r *http.Request, state string) (*loginState, bool) {
	name := k.loginName(state)
	for _, c := range r.CookiesNamed(name) {
		var s loginState
		if securecookie.DecodeMulti(name, c.Value, &s, k.loginCodecs...) != nil {
			continue
		}
		if subtle.ConstantTimeCompare([]byte(s.State), []byte(state)) == 1 {
			return &s, true
		}
	}
	return nil, false
}

func (k *cookies) expireLogin(w http.ResponseWriter, name string) {
	http.SetCookie(w, k.broker(name, "", http.SameSiteLaxMode, 0))
}

// session opens the session cookie. One that cannot be read counts as absent.
func (k *cookies) session(r *http.Request) (*sessionState, bool) {
	for _, c := range r.CookiesNamed(k.sessionName) {
		var s sessionState
		if securecookie.DecodeMulti(k.sessionName, c.Value, &s, k.sessionCodecs...) == nil {
			return &s, true
		}
	}
	return nil, false
}

// setSession seals s and sets both cookies of a session. It sets neither when they do not fit. A refresh token that does not fit
// beside the rest is left out: kept is the session as its cookie has it.
func (k *cookies) setSession(w http.ResponseWriter, s *sessionState, compact string, lifetime time.Duration) (kept *sessionState, err error) {
	if len(k.hubName)+len(compact) > maxCookieBytes {
		return nil, errTokenTooLarge
	}
	value, kept, err := k.seal(s)
	if err != nil {
		return nil, err
	}
	k.setHub(w, compact, lifetime)
	http.SetCookie(w, k.brokerSession(value, s))
	return kept, nil
}

// setState seals s and sets the session cookie alone. It returns the session as its cookie has it.
func (k *cookies) setState(w http.ResponseWriter, s *sessionState) (kept *sessionState, err error) {
	value, kept, err := k.seal(s)
	if err != nil {
		return nil, err
	}
	http.SetCookie(w, k.brokerSession(value, s))
	return kept, nil
}

// seal makes the value of the session cookie, without the refresh token if it must: kept is what is in it.
func (k *cookies) seal(s *sessionState) (value string, kept *sessionState, err error) {
	value, err = k.sealed(s)
	if err == nil || s.Refresh == "" {
		return value, s, err
	}
	bare := *s
	bare.Refresh = ""
	value, err = k.sealed(&bare)
	return value, &bare, err
}

func (k *cookies) sealed(s *sessionState) (string, error) {
	value, err := securecookie.EncodeMulti(k.sessionName, s, k.sessionCodecs...)
	if err != nil { // sealing fails for nothing but length
		return "", fmt.Errorf("%w: seal session cookie: %w", errTokenTooLarge, err)
	}
	if len(k.sessionName)+len(value) > maxCookieBytes {
		return "", errTokenTooLarge
	}
	return value, nil
}

// setHub sets the hub cookie. A host-only twin of one with a Domain would be sent along, and two different tokens are refused, so it
// goes.
func (k *cookies) setHub(w http.ResponseWriter, value string, lifetime time.Duration) {
	if k.domain != "" {
		http.SetCookie(w, k.hub("", "", 0))
	}
	http.SetCookie(w, k.hub(value, k.domain, lifetime))
}

// expireHub removes the hub cookie in every variant that the broker could have set.
func (k *cookies) expireHub(w http.ResponseWriter) { k.setHub(w, "", 0) }

// expireSession removes both cookies of a session.
func (k *cookies) expireSession(w http.ResponseWriter) {
	k.expireHub(w)
	http.SetCookie(w, k.broker(k.sessionName, "", http.SameSiteStrictMode, 0))
}

// signOut removes the session and leaves an empty hub cookie for a while: a credential that the hub refuses, so that streams of
// other tabs end for good and none comes back as an anonymous one.
func (k *cookies) signOut(w http.ResponseWriter) {
	k.setHub(w, "", signedOutLifetime)
	http.SetCookie(w, k.broker(k.sessionName, "", http.SameSiteStrictMode, 0))
}

// brokerSession makes the session cookie, which lives no longer than its session.
func (k *cookies) brokerSession(value string, s *sessionState) *http.Cookie {
	return k.broker(k.sessionName, value, http.SameSiteStrictMode, min(k.idle, time.Until(time.Unix(s.Ends, 0)).Round(time.Second)))
}

// hubValues gives the different values of the hub cookie, as the hub sees them.
func (k *cookies) hubValues(r *http.Request) []string { return httpserver.CookieValues(r, k.hubName) }

// presented says whether a request brings a cookie of a session, readable or not.
func (k *cookies) presented(r *http.Request) bool {
	return len(k.hubValues(r)) > 0 || len(r.CookiesNamed(k.sessionName)) > 0
}

// hub makes the hub cookie. A lifetime of zero expires it.
func (k *cookies) hub(value, domain string, lifetime time.Duration) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure is left out by Options.InsecureCookie alone
		Name: k.hubName, Value: value, Path: k.hubPath, Domain: domain, MaxAge: maxAge(lifetime),
		Secure: k.secure, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

// broker makes one of the broker's own cookies: host-only, for the whole host, as the __Host- prefix demands.
func (k *cookies) broker(name, value string, mode http.SameSite, lifetime time.Duration) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure is left out by Options.InsecureCookie alone
		Name: name, Value: value, Path: "/", MaxAge: maxAge(lifetime),
		Secure: k.secure, HttpOnly: true, SameSite: mode,
	}
}

func maxAge(lifetime time.Duration) int {
	if lifetime <= 0 {
		return -1
	}
	return int(lifetime / time.Second)
}

// validCookieName says whether name is a token (RFC 9110 section 5.6.2), as cookie names must be.
func validCookieName(name string) bool {
	const other = "!#$%&'*+-.^_`|~"
	return name != "" && strings.IndexFunc(name, func(r rune) bool {
		alphanumeric := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !alphanumeric && !strings.ContainsRune(other, r)
	}) < 0
}
