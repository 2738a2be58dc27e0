package harness

import (
	"fmt"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/needs"
)

// failing is a test that keeps what ends it.
type failing struct {
	testing.TB
	fatal string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestFinish_aHangIsNoRefusal(t *testing.T) {
	sh := needs.Shell(t)
	f := &failing{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		finish(f, "", "hang", exec.Command(sh, "-c", "exec sleep 60"), 100*time.Millisecond)
	}()
	<-ended
	if want := "hang did not end within 100ms"; f.fatal != want {
		t.Errorf("failed with %q, want %q", f.fatal, want)
	}
	if _, _, code := finish(t, "", "refusal", exec.Command(sh, "-c", "exit 3"), Patience); code != 3 {
		t.Errorf("exit %d, want 3", code)
	}
}
