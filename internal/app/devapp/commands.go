package devapp

import (
	"strings"
)

// Command is a command line that the server prints: it works pasted anywhere while the server runs.
type Command struct {
	// Title says what it does.
	Title string
	// Line is complete, with absolute paths.
	Line string
}

// commands are the lines for a face. Their credentials are in files of the data folder, never in the line.
func (a *App) commands(s *site) []Command {
	topic := a.topicBase() + "/books/1"
	pattern := a.topicBase() + "/*"
	trust := []string{}
	if !s.plain {
		trust = []string{"--cacert", a.folder.CAFile()}
	}
	curl := append([]string{"curl", "-sS"}, trust...)
	target := []string{"--data", a.folder.Path()}
	cs := []Command{
		{"watch with curl", line(curl, "-N", "-H", "@"+a.folder.SubscribeHeaderFile(), "-G", s.hubURL,
			"--data-urlencode", "match_urlpattern="+pattern)},
		{"publish with curl", line(curl, "-H", "@"+a.folder.PublishHeaderFile(), s.hubURL,
			"--data-urlencode", "topic="+topic, "--data-urlencode", `data={"status":"reserved"}`, "-d", "private=on")},
	}
	if s.plain {
		return cs // the header files hold tokens of the HTTPS face
	}
	return append(cs,
		Command{"watch with hub", line([]string{a.options.Executable, "subscribe"}, append(target, "--pattern", "/demo/*")...)},
		Command{"publish with hub", line([]string{a.options.Executable, "publish"}, append(target, "--private", topic, `{"status":"sold"}`)...)},
	)
}

// line joins words into a shell command.
func line(first []string, more ...string) string {
	words := make([]string, 0, len(first)+len(more))
	for _, w := range append(append([]string{}, first...), more...) {
		words = append(words, quote(w))
	}
	return strings.Join(words, " ")
}

// quote makes a word safe for a POSIX shell.
func quote(w string) string {
	if w != "" && !strings.ContainsFunc(w, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:@%+=,", r)
	}) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
