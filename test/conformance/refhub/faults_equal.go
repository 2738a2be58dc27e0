package refhub

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

func equal(name, check, does string, into func(p *planted) *equality, same func(given, wanted string) bool) entry {
	return entry{Fault{name, check, does}, func(p *planted) { into(p).same = same }}
}

// What several things are wrongly compared by.
func finalSlash(g, w string) bool { return strings.TrimSuffix(g, "/") == strings.TrimSuffix(w, "/") }
func shorter(g, w string) bool    { return g != "" && strings.HasPrefix(w, g) }
func longer(g, w string) bool     { return strings.HasPrefix(g, w) }
func trimmed(g, w string) bool    { return strings.Trim(g, " \t\r\n\x00") == w }
func within(g, w string) bool     { return strings.Contains(g, w) }

func unescaped(g, w string) bool {
	u, err := url.PathUnescape(g)
	return err == nil && u == w
}

// before compares what stands before one of some characters.
func before(chars string) func(g, w string) bool {
	return func(g, w string) bool {
		i := strings.IndexAny(g, chars)
		return i >= 0 && g[:i] == w
	}
}

// listed takes a text for a list.
func listed(separators string) func(g, w string) bool {
	return func(g, w string) bool {
		return slices.Contains(strings.FieldsFunc(g, func(r rune) bool { return strings.ContainsRune(separators, r) }), w)
	}
}

// equalityFaults take more for equal than byte for byte: audiences, issuers, and the type of details.
func equalityFaults() []entry {
	audience := func(p *planted) *equality { return &p.audience }
	issuer := func(p *planted) *equality { return &p.issuer }
	detail := func(p *planted) *equality { return &p.detailType }
	return []entry{
		equal("audience-prefix-accepted", "TOK-18/shorter", "Accepts an audience that the resource begins with.", audience, shorter),
		equal("audience-extension-accepted", "TOK-18/longer", "Accepts an audience that begins with the resource.", audience, longer),
		equal("audience-final-slash-accepted", "TOK-18/trailing-slash", "Takes a final slash of an audience for nothing.", audience, finalSlash),
		equal("audience-case-ignored", "TOK-18/upper-case-host", "Compares audiences without regard to case.", audience, strings.EqualFold),
		equal("audience-origin-accepted", "TOK-18/origin-alone", "Accepts any audience on the hub's origin.", audience, func(g, w string) bool { a, _ := path(g); b, _ := path(w); return a == b }),
		equal("audience-trimmed", "TOK-18/space-after", "Trims audiences.", audience, trimmed),
		equal("audience-query-ignored", "TOK-18/query", "Ignores a query of an audience.", audience, before("?")),
		equal("audience-fragment-ignored", "TOK-18/fragment", "Ignores a fragment of an audience.", audience, before("#")),
		equal("audience-decoded", "TOK-18/escaped-letter", "Undoes percent-encoding in audiences.", audience, unescaped),
		equal("audience-list-read", "TOK-18/list-in-string", "Takes an audience for a list with spaces.", audience, listed(" ,")),
		equal("audience-substring-accepted", "TOK-18/JSON-in-string", "Accepts an audience that holds the resource.", audience, within),
		equal("audience-wildcard-accepted", "TOK-18/wildcard", "Takes * for any audience.", audience, func(g, _ string) bool { return g == wildcard }),
		equal("audience-below-accepted", "TOK-18/below", "Accepts audiences below the resource.", audience, func(g, w string) bool { return strings.HasPrefix(g, w+"/") }),
		equal("issuer-final-slash-accepted", "TOK-19/trailing-slash", "Takes a final slash of an issuer for nothing.", issuer, finalSlash),
		equal("issuer-case-ignored", "TOK-19/other-case", "Compares issuers without regard to case.", issuer, strings.EqualFold),
		equal("issuer-prefix-accepted", "TOK-19/shorter", "Accepts an issuer that a trusted one begins with.", issuer, shorter),
		equal("issuer-extension-accepted", "TOK-19/longer", "Accepts an issuer that begins with a trusted one.", issuer, longer),
		equal("issuer-suffix-accepted", "TOK-19/longer-before", "Accepts an issuer that ends with a trusted one.", issuer, func(g, w string) bool { return strings.HasSuffix(g, w) }),
		equal("issuer-trimmed", "TOK-19/space-before", "Trims issuers.", issuer, trimmed),
		equal("issuer-query-ignored", "TOK-19/query", "Ignores a query of an issuer.", issuer, before("?")),
		equal("issuer-fragment-ignored", "TOK-19/fragment", "Ignores a fragment of an issuer.", issuer, before("#")),
		equal("issuer-cut-at-null", "TOK-19/U+0000-after", "Cuts issuers at U+0000.", issuer, before("\x00")),
		equal("detail-type-final-slash-accepted", "RAR-01/trailing-slash", "Takes a final slash of the type for nothing.", detail, finalSlash),
		equal("detail-type-case-ignored", "RAR-01/upper-case", "Compares the type without regard to case.", detail, strings.EqualFold),
		equal("detail-type-scheme-ignored", "RAR-01/http", "Takes http for https in the type.", detail, func(g, w string) bool { return strings.Replace(g, "http:", "https:", 1) == w }),
		equal("detail-type-prefix-accepted", "RAR-01/plural", "Accepts types that begin with the protocol's.", detail, longer),
		equal("detail-type-suffix-accepted", "RAR-01/last-segment", "Accepts the last segment of the type.", detail, func(g, w string) bool { return g != "" && strings.HasSuffix(w, "/"+g) }),
		equal("detail-type-without-scheme-accepted", "RAR-01/without-scheme", "Accepts the type without its scheme.", detail, func(g, w string) bool { return g != "" && "https:"+g == w }),
		equal("detail-type-shorter-accepted", "RAR-01/shorter", "Accepts what the type begins with.", detail, shorter),
		equal("detail-type-trimmed", "RAR-01/space-before", "Trims types.", detail, trimmed),
		equal("detail-type-fragment-ignored", "RAR-01/fragment", "Ignores a fragment of the type.", detail, before("#")),
		equal("detail-type-query-ignored", "RAR-01/query", "Ignores a query of the type.", detail, before("?")),
		equal("detail-type-decoded", "RAR-01/escaped-letter", "Undoes percent-encoding in types.", detail, unescaped),
		equal("detail-type-default-port-ignored", "RAR-01/default-port", "Ignores a default port in the type.", detail, func(g, w string) bool { return strings.Replace(g, ":443/", "/", 1) == w }),
		equal("detail-type-short-name-accepted", "RAR-01/mercure", "Knows the type as mercure.", detail, func(g, _ string) bool { return g == "mercure" }),
		equal("detail-type-optional", "RAR-01/empty", "Takes an empty type, or none, for the protocol's.", detail, func(g, _ string) bool { return g == "" }),
	}
}

// originFaults compare origins otherwise than whole: those of pages that read (CORS-04), and of pages that publish with
// the cookie (SEC-06).
func originFaults() []entry {
	add := func(name, check, csrf, does string, same func(given, wanted string) bool) []entry {
		faults := []entry{equal("origin-"+name, "CORS-04/"+check, "Allows origins "+does+".", func(p *planted) *equality { return &p.origin }, same)}
		if csrf != "" {
			faults = append(faults, equal("page-"+name, "SEC-06/"+csrf, "Lets pages of origins "+does+" publish with the cookie.", func(p *planted) *equality { return &p.page }, same))
		}
		return faults
	}
	host := func(origin string) string { _, h, _ := originParts(origin); return h }
	return slices.Concat(
		add("prefix-compared", "prefix", "suffix-as-origin", "that begin with an allowed one", longer),
		add("suffix-compared", "suffix", "host-prefix-as-origin", "that end with an allowed host", func(g, w string) bool { return strings.HasSuffix(g, host(w)) }),
		add("substring-compared", "as-query", "own-origin-in-query-of-referer", "that hold an allowed one", within),
		add("host-searched", "as-path", "own-origin-in-path-of-referer", "that hold an allowed host", func(g, w string) bool { return strings.Contains(g, host(w)) }),
		add("scheme-ignored", "other-scheme", "other-scheme-as-origin", "with another scheme", func(g, w string) bool {
			_, a, p := originParts(g)
			_, b, q := originParts(w)
			return a != "" && a == b && p == q
		}),
		add("port-ignored", "other-port", "other-port-as-origin", "with another port", func(g, w string) bool {
			s, a, _ := originParts(g)
			r, b, _ := originParts(w)
			return a != "" && a == b && s == r
		}),
		add("port-only-compared", "", "other-host-same-port-as-origin", "on another host with the same port", func(g, w string) bool {
			s, _, p := originParts(g)
			r, _, q := originParts(w)
			return s != "" && s == r && p == q
		})[1:],
		add("of-sub-domains", "sub-domain", "sub-domain-as-origin", "of sub-domains", func(g, w string) bool { return strings.HasSuffix(host(g), "."+host(w)) }),
		add("of-parent-domains", "parent-domain", "", "of parent domains", func(g, w string) bool { return host(g) != "" && strings.HasSuffix(host(w), "."+host(g)) }),
		add("case-ignored", "upper-case", "", "in another case", strings.EqualFold),
		add("path-ignored", "path", "", "with a path", func(g, w string) bool { a, _ := path(g); return a == w }),
		add("dots-any-character", "any-character-for-a-dot", "", "with any character for a dot", func(g, w string) bool {
			matched, err := regexp.MatchString("^"+w+"$", g)
			return err == nil && matched
		}),
		add("userinfo-ignored", "with-user", "origin-as-userinfo-as-origin", "with userinfo", func(g, w string) bool {
			u, err := url.Parse(g)
			return err == nil && u.User != nil && (u.Scheme+"://"+u.Host == w || u.Scheme+"://"+u.User.Username() == w)
		}),
		add("final-dot-ignored", "trailing-dot", "", "with a dot behind the host", func(g, w string) bool { return strings.TrimSuffix(g, ".") == w }),
		add("final-slash-ignored", "trailing-slash", "", "with a final slash", finalSlash),
		add("list-read", "list-first", "list-of-origins", "in a list", listed(", ")),
		add("scheme-optional", "without-scheme", "", "without a scheme", func(g, w string) bool { return g == host(w) }),
		add("wildcard-read", "wildcard-host", "", "with a wildcard host", func(g, w string) bool {
			return strings.Contains(g, "*") && strings.Replace(g, "*", host(w), 1) == w
		}),
	)
}

// detailEqualityFaults compare names of tokens otherwise than they are: typ, alg, actions, matcher types.
func detailEqualityFaults() []entry {
	typ := func(p *planted) *equality { return &p.typ }
	alg := func(p *planted) *equality { return &p.algorithm }
	action := func(p *planted) *equality { return &p.action }
	kind := func(p *planted) *equality { return &p.matchType }
	return []entry{
		equal("typ-trimmed", "TOK-01/space-before", "Trims typ.", typ, func(g, w string) bool { return strings.EqualFold(strings.TrimSpace(g), w) }),
		equal("typ-suffix-accepted", "TOK-01/xat+jwt", "Accepts a typ that ends with at+jwt.", typ, func(g, w string) bool { return strings.HasSuffix(g, w) && !strings.Contains(g, "/") }),
		equal("typ-decoded", "TOK-01/escaped-plus", "Undoes percent-encoding in typ.", typ, unescaped),
		equal("typ-with-space-accepted", "TOK-01/plus-as-space", "Takes a space in typ for a plus sign.", typ, func(g, w string) bool { return strings.ReplaceAll(g, " ", "+") == w }),
		equal("empty-typ-accepted", "TOK-01/empty", "Accepts an empty typ.", typ, func(g, _ string) bool { return g == "" }),
		equal("logout-token-accepted", "TOK-01/logout+jwt", "Accepts the typ logout+jwt.", typ, func(g, _ string) bool { return strings.EqualFold(g, "logout+jwt") }),
		equal("any-jwt-accepted", "TOK-01/oauth-authz-req+jwt", "Accepts any typ that ends with +jwt.", typ, func(g, _ string) bool { return strings.HasSuffix(strings.ToLower(g), "+jwt") }),
		equal("typ-slash-accepted", "TOK-02/xapplication/at+jwt", "Accepts a typ that holds at+jwt anywhere.", typ, within),
		equal("typ-application-twice-accepted", "TOK-02/twice", "Removes application/ as often as it is there.", typ, func(g, w string) bool { return strings.ReplaceAll(strings.ToLower(g), "application/", "") == w }),
		equal("algorithm-case-ignored", "TOK-03/lower-case", "Compares algorithms without regard to case.", alg, strings.EqualFold),
		equal("algorithm-trimmed", "TOK-03/space-after", "Trims algorithms.", alg, trimmed),
		equal("algorithm-family-accepted", "TOK-03/family-alone", "Accepts the family of an algorithm.", alg, shorter),
		equal("algorithm-extension-accepted", "TOK-03/two-in-one", "Accepts what begins with an algorithm.", alg, longer),
		equal("algorithm-wildcard-accepted", "TOK-03/wildcard", "Takes * for any algorithm.", alg, func(g, _ string) bool { return g == wildcard }),
		equal("algorithm-of-old-name-accepted", "TOK-03/RS1", "Accepts algorithms with SHA-1 by verifying with another.", alg, func(g, w string) bool { return len(g) > 2 && len(w) > 2 && strings.HasSuffix(g, "1") }),
		equal("action-trimmed", "RAR-06/space-before", "Trims actions.", action, trimmed),
		equal("action-prefix-accepted", "RAR-06/prefix", "Accepts what an action begins with.", action, shorter),
		equal("action-extension-accepted", "RAR-06/longer", "Accepts what begins with an action.", action, longer),
		equal("action-list-read", "RAR-06/list-in-string", "Takes an action for a list.", action, listed(", ")),
		equal("action-wildcard-accepted", "RAR-06/wildcard", "Takes * for all actions.", action, func(g, _ string) bool { return g == wildcard }),
		equal("action-synonyms-accepted", "RAR-06/write", "Takes write for publish and read for subscribe.", action, func(g, w string) bool {
			return map[string]string{"write": actionPublish, "read": actionSubscribe}[g] == w
		}),
		equal("action-all-accepted", "RAR-06/all", "Takes all for all actions.", action, func(g, _ string) bool { return g == "all" }),
		equal("action-empty-accepted", "RAR-06/empty-name", "Takes an empty action for all.", action, func(g, _ string) bool { return g == "" }),
		equal("match-type-trimmed", "RAR-18/space-after", "Trims matcher types.", kind, trimmed),
		equal("match-type-prefixed-accepted", "RAR-18/match_exact", "Accepts matcher types as parameters spell them.", kind, func(g, w string) bool { return g == "match_"+w || g == "match" && w == exact }),
		equal("match-type-hyphened-accepted", "RAR-18/url-pattern", "Accepts url-pattern.", kind, func(g, w string) bool { return g == "url-pattern" && w == urlPatterns }),
		equal("match-type-underscored-accepted", "RAR-18/url_pattern", "Accepts url_pattern.", kind, func(g, w string) bool { return g == "url_pattern" && w == urlPatterns }),
		equal("match-type-template-accepted", "RAR-18/uri-template", "Accepts the URI templates of old.", kind, func(g, w string) bool { return strings.HasPrefix(g, "uri") && w == urlPatterns }),
		equal("match-type-wildcard-accepted", "RAR-18/*", "Accepts * as a matcher type.", kind, func(g, w string) bool { return g == wildcard && w == exact }),
	}
}

// cursorFaults find events by other ids than their own (REC-12, REC-17, REC-24).
func cursorFaults() []entry {
	add := func(name, check, does string, same func(given, wanted string) bool) entry {
		return equal(name, check, does, func(p *planted) *equality { return &p.cursor }, same)
	}
	return []entry{
		add("cursor-is-prefix", "REC-17/part-of-an-id-parameter", "Finds an event by the beginning of its id.", shorter),
		add("cursor-is-extension", "REC-17/longer-than-an-id-parameter", "Finds an event by what begins with its id.", longer),
		add("cursor-case-ignored", "REC-17/id-in-other-case-parameter", "Finds an event by its id in another case.", strings.EqualFold),
	}
}

// fieldFaults misread the Authorization field (AUTH-21, AUTH-22, AUTH-25).
func fieldFaults() []entry {
	add := func(name, check, does string, change func(fields []string) []string) entry {
		return entry{Fault{name, check, does}, func(p *planted) { p.fields.change = change }}
	}
	each := func(change func(field string) string) func([]string) []string {
		return func(fields []string) []string {
			changed := make([]string, len(fields))
			for i, f := range fields {
				changed[i] = change(f)
			}
			return changed
		}
	}
	replace := func(expression, replacement string) func([]string) []string {
		e := regexp.MustCompile(expression)
		return each(func(f string) string { return e.ReplaceAllString(f, replacement) })
	}
	drop := func(dropped func(field string) bool) func([]string) []string {
		return func(fields []string) []string { return slices.DeleteFunc(slices.Clone(fields), dropped) }
	}
	return []entry{
		add("last-authorization-used", "AUTH-25/bad-and-right-to-publish", "Uses the last of two Authorization fields.", func(fields []string) []string { return fields[max(0, len(fields)-1):] }),
		add("bearer-field-chosen", "AUTH-25/right-and-Basic-to-publish", "Chooses the Bearer field of several.", func(fields []string) []string {
			bearer := drop(func(f string) bool { return !strings.HasPrefix(f, "Bearer ") })(fields)
			if len(bearer) == 1 {
				return bearer
			}
			return fields
		}),
		add("first-of-list-used", "AUTH-21/list-to-publish", "Uses what stands before a comma.", replace(`,.*$`, "")),
		add("last-word-used", "AUTH-21/word-and-token-to-publish", "Uses the last word of a field.", replace(`(?i)^(bearer) .* (\S+)$`, "$1 $2")),
		add("quotes-dropped", "AUTH-21/quoted-to-publish", "Drops quotes around a token.", replace(`"`, "")),
		add("parameter-read", "AUTH-21/parameter-to-publish", "Reads a token from a parameter.", replace(`(?i)^(bearer) +\w+="?([^"]*)"?$`, "$1 $2")),
		add("longer-scheme-accepted", "AUTH-22/longer-scheme", "Takes schemes that begin with Bearer for it.", replace(`(?i)^bearer\S+ `, "Bearer ")),
		add("scheme-optional", "AUTH-22/token-alone", "Takes a field without a scheme for a token.", each(func(f string) string {
			if f != "" && !strings.Contains(f, " ") && strings.Contains(f, ".") {
				return "Bearer " + f
			}
			return f
		})),
		add("basic-password-read", "AUTH-22/Basic-with-the-token", "Takes a password for a token.", each(func(f string) string {
			if raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(f, "Basic ")); err == nil && strings.HasPrefix(f, "Basic ") {
				_, password, _ := strings.Cut(string(raw), ":")
				return "Bearer " + password
			}
			return strings.Replace(f, "Basic ", "Bearer ", 1)
		})),
		add("empty-field-is-none", "AUTH-22/empty-field-and-cookie-to-publish", "Takes an empty field for none.", drop(func(f string) bool { return strings.TrimSpace(f) == "" })),
		add("other-schemes-are-none", "AUTH-22/Digest-and-cookie-to-publish", "Takes a field of another scheme for none.", drop(func(f string) bool { return !strings.EqualFold(strings.SplitN(f+" ", " ", 2)[0], "Bearer") })),
	}
}

// compactFaults repair what is no compact serialisation (AUTH-05, TOK-22).
func compactFaults() []entry {
	add := func(name, check, does string, change func(string) string) entry {
		return entry{Fault{name, check, does}, func(p *planted) { p.compact.change = change }}
	}
	return []entry{
		add("padding-accepted", "TOK-22/padding-in-signature", "Accepts padded segments.", func(s string) string { return strings.ReplaceAll(s, "=", "") }),
		add("standard-alphabet-accepted", "TOK-22/standard-alphabet-in-signature", "Accepts the standard alphabet of base64.", strings.NewReplacer("+", "-", "/", "_").Replace),
		add("foreign-letters-dropped", "TOK-22/letter-outside-the-alphabet", "Drops letters outside the alphabet.", func(s string) string { return regexp.MustCompile(`[^A-Za-z0-9_.-]`).ReplaceAllString(s, "") }),
		add("surplus-dots-dropped", "AUTH-05/dot-at-the-end-to-publish", "Drops dots around a token.", func(s string) string { return strings.Trim(s, ".") }),
		add("surplus-parts-ignored", "AUTH-05/fourth-part-to-publish", "Ignores parts behind the third.", func(s string) string {
			parts := strings.Split(s, ".")
			return strings.Join(parts[:min(3, len(parts))], ".")
		}),
	}
}
