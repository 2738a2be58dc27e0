package hubhttp

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

func TestPresented(t *testing.T) {
	const name = "__Secure-mercure_access_token"
	header := func(compact string) credential { return credential{carrier: carriedByHeader, compact: compact} }
	cookie := func(compact string) credential { return credential{carrier: carriedByCookie, compact: compact} }
	for _, tc := range []struct {
		name          string
		authorization []string
		cookies       []string
		want          credential
		err           error
	}{
		{name: "nothing"},
		{name: "AUTH-19 Bearer and token", authorization: []string{"Bearer a.b.c"}, want: header("a.b.c")},
		{name: "AUTH-20 scheme in any case", authorization: []string{"bEaReR a.b.c"}, want: header("a.b.c")},
		{name: "AUTH-19 several spaces", authorization: []string{"Bearer   a.b.c"}, want: header("a.b.c")},
		{name: "AUTH-19 padding is part of the syntax", authorization: []string{"Bearer a+/~_-.=="}, want: header("a+/~_-.==")},
		{name: "AUTH-21 no token", authorization: []string{"Bearer"}, err: errMalformedBearer},
		{name: "AUTH-21 no token but a space", authorization: []string{"Bearer "}, err: errMalformedBearer},
		{name: "AUTH-21 two tokens", authorization: []string{"Bearer a b"}, err: errMalformedBearer},
		{name: "AUTH-21 two tokens by comma", authorization: []string{"Bearer a, Bearer b"}, err: errMalformedBearer},
		{name: "AUTH-21 parameters instead of a token", authorization: []string{`Bearer realm="x"`}, err: errMalformedBearer},
		{name: "AUTH-21 tab instead of space", authorization: []string{"Bearer\ta"}, err: errMalformedBearer},
		{name: "AUTH-21 padding alone", authorization: []string{"Bearer =="}, err: errMalformedBearer},
		{name: "AUTH-21 non-ASCII", authorization: []string{"Bearer é"}, err: errMalformedBearer},
		{name: "AUTH-21 comma after the scheme", authorization: []string{"Bearer,a"}, err: errMalformedBearer},
		{name: "AUTH-21 empty field", authorization: []string{""}, err: errMalformedBearer},
		{name: "AUTH-21 no scheme", authorization: []string{`"a"`}, err: errMalformedBearer},
		{name: "AUTH-22 another scheme carries nothing", authorization: []string{"Basic dTpw"}, cookies: []string{name + "=a"}},
		{name: "AUTH-22 a bare scheme carries nothing", authorization: []string{"Negotiate"}, cookies: []string{name + "=a"}},
		{name: "AUTH-22 a scheme that starts like Bearer", authorization: []string{"BearerX a"}, cookies: []string{name + "=a"}},
		{name: "AUTH-25 two fields", authorization: []string{"Bearer a", "Bearer a"}, err: errTwoAuthorizations},
		{name: "AUTH-16 header beats cookie", authorization: []string{"Bearer a"}, cookies: []string{name + "=b"}, want: header("a")},
		{name: "AUTH-17 cookie", cookies: []string{name + "=a.b.c"}, want: cookie("a.b.c")},
		{name: "COOKIE-09 among others", cookies: []string{"a=b; " + name + "=x; c=d"}, want: cookie("x")},
		{name: "COOKIE-09 without spaces", cookies: []string{"a=b;" + name + "=x;c=d"}, want: cookie("x")},
		{name: "COOKIE-09 in a second field", cookies: []string{"a=b", name + "=x"}, want: cookie("x")},
		{name: "COOKIE-09 other case", cookies: []string{strings.ToLower(name) + "=x"}},
		{name: "COOKIE-09 longer name", cookies: []string{name + "2=x; x" + name + "=y"}},
		{name: "COOKIE-09 name inside a value", cookies: []string{"a=" + name + "=x"}},
		{name: "COOKIE-09 beside pairs net/http drops", cookies: []string{"b@d name=1; a=\"q; " + name + "=x; =y; z"}, want: cookie("x")},
		{name: "COOKIE-09 value as it is", cookies: []string{name + `="a,b c"`}, want: cookie(`"a,b c"`)},
		{name: "COOKIE-09 value with equals signs", cookies: []string{name + "=a=b="}, want: cookie("a=b=")},
		{name: "COOKIE-09 name without equals sign is no cookie of that name", cookies: []string{name}},
		{name: "empty cookie is a credential", cookies: []string{name + "="}, want: cookie("")},
		{name: "equal duplicates count once", cookies: []string{name + "=x; " + name + "=x", name + "=x"}, want: cookie("x")},
		{name: "different duplicates", cookies: []string{name + "=x; " + name + "=y"}, err: errTwoCookies},
		{name: "different duplicates across fields", cookies: []string{name + "=x", name + "=y"}, err: errTwoCookies},
		{name: "empty and full duplicates", cookies: []string{name + "=; " + name + "=y"}, err: errTwoCookies},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := &api{options: Options{CookieName: name}}
			r := &http.Request{Header: http.Header{"Authorization": tc.authorization, "Cookie": tc.cookies}}
			got, err := a.presented(r)
			if got != tc.want || !errors.Is(err, tc.err) || err != nil && tc.err == nil {
				t.Errorf("presented = %+v, %v, want %+v, %v", got, err, tc.want, tc.err)
			}
		})
	}
}

func FuzzHeaderCredential(f *testing.F) {
	for _, seed := range []string{"Bearer a.b.c", "bearer  a==", "Basic x", "Bearer", "Bearer\ta", "", "Bearer a, b", "Béarer x"} {
		f.Add(seed)
	}
	valid := regexp.MustCompile(`^(?i:bearer) +([A-Za-z0-9._~+/-]+=*)$`)
	f.Fuzz(func(t *testing.T, field string) {
		got, err := headerCredential(field)
		m := valid.FindStringSubmatch(field)
		switch {
		case m != nil:
			if err != nil || got.compact != m[1] || got.carrier != carriedByHeader {
				t.Errorf("headerCredential(%q) = %+v, %v, want %q", field, got, err, m[1])
			}
		case got != (credential{}):
			t.Errorf("headerCredential(%q) = %+v, want nothing", field, got)
		case err == nil && regexp.MustCompile("^(?i:bearer)($|[^!#$%&'*+.^_`|~0-9A-Za-z-])").MatchString(field):
			t.Errorf("headerCredential(%q) took a Bearer presentation for another scheme", field)
		}
	})
}

func FuzzCookieCredential(f *testing.F) {
	for _, seed := range []string{"t=a", "x=y; t=a; t=a", "t=a;t=b", "t", "t=", ";;t=;", "\"t=\"; t=x", "T=a"} {
		f.Add(seed, "")
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		got, err := cookieCredential(&http.Request{Header: http.Header{"Cookie": {one, two}}}, "t")
		var values []string
		for pair := range strings.SplitSeq(one+";"+two, ";") {
			if key, value, ok := strings.Cut(pair, "="); ok && strings.Trim(key, " \t") == "t" {
				values = append(values, strings.Trim(value, " \t"))
			}
		}
		differ := false
		for _, v := range values {
			differ = differ || v != values[0]
		}
		switch {
		case differ != errors.Is(err, errTwoCookies):
			t.Errorf("cookieCredential(%q, %q) = %+v, %v for the values %q", one, two, got, err, values)
		case !differ && len(values) > 0 && (got.carrier != carriedByCookie || got.compact != values[0]):
			t.Errorf("cookieCredential(%q, %q) = %+v, want %q", one, two, got, values[0])
		case len(values) == 0 && got != (credential{}):
			t.Errorf("cookieCredential(%q, %q) = %+v, want nothing", one, two, got)
		}
	})
}

func TestResumeHeader(t *testing.T) {
	for _, tc := range []struct {
		fields []string
		want   string
		ok     bool
	}{
		{nil, "", false},
		{[]string{""}, "", true},
		{[]string{"a%2B b+c"}, "a%2B b+c", true},
		{[]string{"é-1"}, "é-1", true},
		{[]string{"\xe9-1"}, "é-1", true},
		{[]string{"a", "b"}, "a", true},
	} {
		got, ok := resumeHeader(&http.Request{Header: http.Header{"Last-Event-Id": tc.fields}})
		if got != tc.want || ok != tc.ok {
			t.Errorf("resumeHeader(%q) = %q, %v, want %q, %v", tc.fields, got, ok, tc.want, tc.ok)
		}
	}
}

func TestIsForm(t *testing.T) {
	for _, tc := range []struct {
		header http.Header
		want   bool
	}{
		{http.Header{}, false},
		{http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, true},
		{http.Header{"Content-Type": {"Application/X-WWW-Form-UrlEncoded; charset=UTF-8"}}, true},
		{http.Header{"Content-Type": {"application/x-www-form-urlencoded ; a; b=\"c"}}, true},
		{http.Header{"Content-Type": {"application/x-www-form-urlencoded2"}}, false},
		{http.Header{"Content-Type": {"application/json"}}, false},
		{http.Header{"Content-Type": {"multipart/form-data; boundary=x"}}, false},
		{http.Header{"Content-Type": {"application/x-www-form-urlencoded", "application/json"}}, false},
		{http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Content-Encoding": {"gzip"}}, false},
		{http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Content-Encoding": {"Identity"}}, true},
	} {
		if got := isForm(tc.header); got != tc.want {
			t.Errorf("isForm(%v) = %v, want %v", tc.header, got, tc.want)
		}
	}
}
