package local

import (
	"errors"
	"log/slog"
	"time"
)

// defaultWait is longer than a process that has let go of the history's store needs to end.
const defaultWait = 5 * time.Second

// Options say which file a Directory has. Zero values mean the defaults that the fields name.
type Options struct {
	// Path is the file. Open makes it with mode 0600, in a folder that is there. Beside it there may be one with the suffix .damaged.
	Path string
	// Wait is how long Open waits for another process that has the file open, such as a predecessor that is ending; 0 means 5 s.
	Wait time.Duration
	// Logger is told of a file that was given up; nil means nobody.
	Logger *slog.Logger
}

// Validate returns an error for values that make no sense.
func (o Options) Validate() error {
	switch {
	case o.Path == "":
		return errors.New("local: no file given")
	case o.Wait < 0:
		return errors.New("local: negative wait")
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Wait == 0 {
		o.Wait = defaultWait
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
