package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitWhole  = 0 // everything was delivered, once and in order
	exitBroken = 1 // something was not, or the hub refused something
	exitUsage  = 2 // it could not be tried
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// command is the program without the process around it.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "floor" {
		return finish(stderr, floorCommand(ctx, args[1:], stderr))
	}
	o, err := parse(args, stderr)
	if err != nil {
		return finish(stderr, err)
	}
	out := report{json: o.json, w: stdout}
	for _, name := range o.args {
		run := o.scenario
		if o.versus != "" {
			run = o.compare
		}
		if err := run(ctx, name, &out); err != nil {
			return out.code(finish(stderr, errors.Join(fmt.Errorf("%s: %w", name, err), out.close())))
		}
	}
	return out.code(finish(stderr, out.close()))
}

// finish says what is wrong, if anything is.
func finish(stderr io.Writer, err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return exitWhole
	}
	fmt.Fprintf(stderr, "load: %v\n", err)
	return exitUsage
}
