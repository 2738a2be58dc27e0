package devapp

import "strings"

// Command is a command line that the server prints: it works pasted anywhere while the server runs.
type Command struct {
	// Title says what it does.
	Title string
	// Line is complete, with absolute paths.
	Line string
}

// commands are the lines to try, the same on both faces: they go to the HTTPS face, whose tokens the header files hold, and updates
// reach the readers of both. Their credentials are in files of the data folder, never in the line.
func (a *App) commands() []Command {
	hub, topic, pattern := a.sites[0].hubURL, a.topicBase()+"/books/1", a.topicBase()+"/*"
	curl := []string{"curl", "-sS", "--cacert", a.folder.CAFile()}
	program, data := a.options.Executable, a.folder.Path()
	return []Command{
		{"watch with curl", line(curl, "-N", "-H", "@"+a.folder.SubscribeHeaderFile(), "-G", hub,
			"--data-urlencode", "match_urlpattern="+pattern)},
		{"publish with curl", line(curl, "-H", "@"+a.folder.PublishHeaderFile(), hub,
			"--data-urlencode", "topic="+topic, "--data-urlencode", `data={"status":"reserved"}`, "-d", "private=on")},
		{"watch with hub", line([]string{program, "subscribe", "--data", data, "--pattern", "/demo/*"})},
		{"publish with hub", line([]string{program, "publish", "--data", data, "--private", topic, `{"status":"sold"}`})},
	}
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
