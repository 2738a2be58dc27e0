// Command authz is the authorization server and the commands that manage it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/cli/authzcli"
)

// version is set when the program is built.
var version = "devel"

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	return authzcli.Main(ctx, cli.ProcessEnv(version))
}
