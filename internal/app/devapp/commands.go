package devapp

import "github.com/cinnabar-hub/cinnabar/internal/shell"

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
	ca, program, data := a.folder.CAFile(), a.options.Executable, a.folder.Path()
	return []Command{
		{"watch with curl", shell.Line("curl", "-sS", "--cacert", ca, "-N", "-H", "@"+a.folder.SubscribeHeaderFile(), "-G", hub,
			"--data-urlencode", "match_urlpattern="+pattern)},
		{"publish with curl", shell.Line("curl", "-sS", "--cacert", ca, "-H", "@"+a.folder.PublishHeaderFile(), hub,
			"--data-urlencode", "topic="+topic, "--data-urlencode", `data={"status":"reserved"}`, "-d", "private=on")},
		{"watch with hub", shell.Line(program, "subscribe", "--data", data, "--pattern", "/demo/*")},
		{"publish with hub", shell.Line(program, "publish", "--data", data, "--private", topic, `{"status":"sold"}`)},
	}
}
