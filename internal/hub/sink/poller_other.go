//go:build !linux

package sink

import (
	"context"
	"net"
	"syscall"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
)

// poller is nothing where there is no epoll: every stream has a goroutine that reads instead.
type poller struct{}

func newPoller() (*poller, error) { return &poller{}, nil }

func (*poller) run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (*poller) close() error { return nil }

// watch has w told when the peer hangs up.
func (s *Set) watch(conn net.Conn, _ syscall.RawConn, w watched) (unwatch func(), err error) {
	return s.watchByReading(conn, w)
}

// tune sets no options.
func tune(syscall.RawConn, time.Duration) {}

// directSink tells that there is none.
func (*Set) directSink(net.Conn, syscall.RawConn, []byte, hub.Framing) hub.Sink { return nil }
