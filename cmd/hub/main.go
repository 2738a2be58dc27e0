// Command hub is the Mercure hub: the development server, the server, and the verbs of publishers and subscribers.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/cli/hubcli"
)

// version is set when the program is built.
var version = "devel"

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	return hubcli.Main(ctx, cli.ProcessEnv(version))
}
