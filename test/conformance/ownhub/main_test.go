package ownhub_test

import (
	"flag"
	"os"
	"testing"

	"github.com/cinnabar-hub/cinnabar/test/harness"
)

// What can be asked for by flags.
var (
	complete  = flag.Bool("all", false, "run all configurations, not only the two that differ most")
	tableFile = flag.String("table", "", "write the table to this `file`")
	runs      = flag.Int("runs", 1, "run everything so `many` times, and compare the results")
	busy      = flag.Bool("busy", false, "keep all cores busy meanwhile")
	selected  = flag.String("checks", "", "run only checks whose name matches this `regexp`")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(harness.Main(m, "test/conformance"))
}
