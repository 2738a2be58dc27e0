package ashttp

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/idna"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// permission is one action on one topic matcher, in words. Lead, Subject and Tail read as one sentence; Raw is what the
// token will say.
type permission struct {
	Lead, Subject, Tail string
	// Warn marks what lets somebody write, reaches everything, or cannot be said in words.
	Warn bool
	// Shown lists the names of the payload members that other watchers see.
	Shown string
	Kind  string
	Raw   string
}

// describe puts details into words, reading before writing. People do not know the identifier of their own account, so it is
// replaced.
func describe(details []rar.Detail, hubURL, accountID string) []permission {
	var reads, writes []permission
	for _, d := range details {
		for _, t := range d.Topics {
			if d.ActionSet().Has(rar.Subscribe) {
				p := describeRead(t, hubURL)
				p.Shown = memberNames(d.Payload)
				reads = append(reads, p)
			}
			if d.ActionSet().Has(rar.Publish) {
				writes = append(writes, describeWrite(t, hubURL))
			}
		}
	}
	all := append(reads, writes...)
	for i := range all {
		if accountID != "" {
			all[i].Subject = strings.ReplaceAll(all[i].Subject, accountID, "(you)")
		}
	}
	return all
}

func describeRead(t rar.TopicMatcher, hubURL string) permission {
	p := permission{Lead: "Read private updates about"}
	p.Kind, p.Raw = kindOf(t), t.Match
	if t.Match == topic.Wildcard {
		p.Lead, p.Subject, p.Tail, p.Warn = "Read", "every private update", "on this hub", true
		return p
	}
	subject, host := subjectOf(t, hubURL)
	if rest, ok := presence(t, hubURL); ok {
		p.Lead, p.Subject, p.Warn = "See", "who is connected", true
		p.Tail = "to this hub, including the details they share"
		if rest != "" {
			p.Tail = "to " + rest + ", including the details they share"
		}
		return p
	}
	p.Subject, p.Tail = subject, onHost(host)
	p.Warn = t.MatchType == topic.URLPattern && subject == verbatim(t) // nobody can tell how much that is
	return p
}

func describeWrite(t rar.TopicMatcher, hubURL string) permission {
	p := permission{Lead: "Send updates about", Kind: kindOf(t), Raw: t.Match, Warn: true}
	if t.Match == topic.Wildcard {
		p.Subject, p.Tail = "anything", "on this hub"
		return p
	}
	subject, host := subjectOf(t, hubURL)
	p.Subject, p.Tail = subject, onHost(host)
	return p
}

func kindOf(t rar.TopicMatcher) string {
	switch {
	case t.Match == topic.Wildcard:
		return "Every topic:"
	case t.MatchType == topic.URLPattern:
		return "Topics that match the pattern"
	default:
		return "The topic"
	}
}

func onHost(host string) string {
	if host == "" {
		return ""
	}
	return "on " + host
}

// presence recognises the hub's own topics about subscriptions; rest is the part that narrows them down.
func presence(t rar.TopicMatcher, hubURL string) (rest string, ok bool) {
	const subscriptions = "/subscriptions"
	match := t.Match
	if strings.HasPrefix(match, "/") {
		if u, err := url.Parse(hubURL); err == nil {
			match = u.Scheme + "://" + u.Host + match
		}
	}
	rest, ok = strings.CutPrefix(match, hubURL+subscriptions)
	if !ok || (rest != "" && rest[0] != '/' && rest[0] != '{' && rest[0] != '*') {
		return "", false
	}
	if slices.Contains([]string{"", "/", "/*", "*", "{/*}?"}, rest) {
		return "", true
	}
	return strings.TrimPrefix(rest, "/"), true
}

// subjectOf names what a matcher is about, and on which host. What it cannot put into words honestly it shows as it is.
func subjectOf(t rar.TopicMatcher, hubURL string) (subject, host string) {
	raw := t.Match
	if strings.HasPrefix(raw, "/") && !strings.HasPrefix(raw, "//") {
		if u, err := url.Parse(hubURL); err == nil {
			raw = u.Scheme + "://" + u.Host + raw
		}
	}
	scheme, rest, found := strings.Cut(raw, "://")
	if !found || (scheme != "https" && scheme != "http") {
		return verbatim(t), ""
	}
	authority, path, _ := strings.Cut(rest, "/")
	if authority == "" || strings.ContainsAny(authority, `@?#\`) {
		return verbatim(t), ""
	}
	if t.MatchType != topic.URLPattern {
		if path == "" {
			return "the page at " + readableHost(authority), ""
		}
		return path, readableHost(authority)
	}
	if !literalHost(authority) {
		return verbatim(t), ""
	}
	if path == "" && !strings.HasSuffix(rest, "/") {
		return "everything", readableHost(authority) // a pattern without a path matches every path
	}
	words, ok := patternPath(path)
	if !ok {
		return verbatim(t), ""
	}
	return words, readableHost(authority)
}

func verbatim(t rar.TopicMatcher) string {
	if t.MatchType == topic.URLPattern {
		return "whatever matches " + t.Match
	}
	return t.Match
}

// literalHost says whether a pattern's authority is plain text with, at most, a port.
func literalHost(authority string) bool {
	host, port, found := strings.Cut(authority, ":")
	if found {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
	}
	return host != "" && !strings.ContainsAny(host, "*{}()[]+?%")
}

// patternPath reads the usual shapes of a pattern's path: all literal, or literal but for the last segment.
func patternPath(path string) (string, bool) {
	folder, last := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		folder, last = path[:i], path[i+1:]
	}
	folder, ok := literal(folder)
	if !ok {
		return "", false
	}
	under := " under " + folder
	if folder == "" {
		under = ""
	}
	name, modifier := cutName(last)
	switch {
	case last == "*", name && (modifier == "*" || modifier == "+" || modifier == "(.*)"):
		return "everything" + under, true
	case name && modifier == "":
		return "anything directly" + under, folder != ""
	}
	text, ok := literal(last)
	if folder != "" {
		text = folder + "/" + text
	}
	return text, ok
}

// cutName splits a segment of the form :name followed by something else.
func cutName(segment string) (isName bool, rest string) {
	name, found := strings.CutPrefix(segment, ":")
	if !found {
		return false, ""
	}
	end := strings.IndexFunc(name, func(r rune) bool {
		return r != '_' && r != '$' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	switch {
	case end == 0 || name == "":
		return false, ""
	case end < 0:
		return true, ""
	}
	return true, name[end:]
}

// literal returns the text that a part of a pattern stands for, if it is nothing but text.
func literal(s string) (string, bool) {
	var text strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i++; i == len(s) {
				return "", false
			}
		case '*', '+', '?', ':', '{', '}', '(', ')', '#':
			return "", false
		}
		text.WriteByte(s[i])
	}
	return text.String(), true
}

// readableHost shows a host that is not ASCII in both spellings: letters of other scripts can look alike.
func readableHost(authority string) string {
	host, port, found := strings.Cut(authority, ":")
	ascii, err := idna.Lookup.ToASCII(host)
	if err != nil || strings.EqualFold(ascii, host) {
		return authority
	}
	if found {
		ascii += ":" + port
	}
	return authority + " (" + ascii + ")"
}

// memberNames lists the names of a payload's members.
func memberNames(payload json.RawMessage) string {
	var members map[string]json.RawMessage
	if len(payload) == 0 || json.Unmarshal(payload, &members) != nil {
		return ""
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// inWords rounds a duration up to what people say.
func inWords(d time.Duration) string {
	const day = 24 * time.Hour
	count := func(n time.Duration, unit string) string {
		if n == 1 {
			return "1 " + unit
		}
		return strconv.FormatInt(int64(n), 10) + " " + unit + "s"
	}
	switch {
	case d < 2*time.Minute:
		return count((d+time.Second-1)/time.Second, "second")
	case d < 2*time.Hour:
		return count((d+time.Minute-1)/time.Minute, "minute")
	case d < 2*day:
		return count((d+time.Hour-1)/time.Hour, "hour")
	default:
		return count((d+day-1)/day, "day")
	}
}
