package wire_test

import (
	"os"
	"testing"

	"github.com/cinnabar-hub/cinnabar/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
