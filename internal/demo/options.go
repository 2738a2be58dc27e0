package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"strings"
)

// Command is a command line that the start page offers for copying.
type Command struct {
	// Title says what the command does, in a few words.
	Title string
	// Line is the command, complete: it works pasted anywhere.
	Line string
}

// Options describes one face of the development server. Face is a site of its own: each gets its own page.
type Options struct {
	// HubURL is the hub's public URL on this face.
	HubURL string
	// Issuer is the authorization server's identifier on this face.
	Issuer string
	// TopicBase is the absolute URL below which the demo's topics live, without a final slash, for example
	// https://localhost:8443/demo. It is the same on both faces.
	TopicBase string
	// User is the demo user's name. Empty: the page does not mention one.
	User string
	// OtherFace is the address of the other face's start page. Empty: the page does not mention one.
	OtherFace string
	// Version is shown at the foot of the page. Empty: it is not.
	Version string
	// Commands are offered for copying, in this order.
	Commands []Command
}

// Dependencies is what the demo needs from the rest of the program.
type Dependencies struct {
	// LastEventID gives the id of the newest event in the history, or "" when there is none.
	LastEventID func(ctx context.Context) (string, error)
	// Templates holds start.html, Static the files served under /static/.
	Templates, Static fs.FS
	// Logger gets failures. Nil: nothing is logged.
	Logger *slog.Logger
}

// Validate reports the first option that cannot work.
func (o Options) Validate() error {
	for name, raw := range map[string]string{"hub URL": o.HubURL, "topic base": o.TopicBase, "issuer": o.Issuer} {
		u, err := url.Parse(raw)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf("demo: %s is not an absolute http or https URL", name)
		}
	}
	if strings.HasSuffix(o.TopicBase, "/") {
		return errors.New("demo: topic base ends in a slash")
	}
	return nil
}

func (d Dependencies) validate() error {
	if d.LastEventID == nil || d.Templates == nil || d.Static == nil {
		return errors.New("demo: a dependency is missing")
	}
	return nil
}
