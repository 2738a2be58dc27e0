package sink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watchedEvents is what the poller waits for, as edges: the peer has closed its side, or a socket that was full takes
// more. Nothing is ever read, so input is no event.
const watchedEvents = unix.EPOLLRDHUP | unix.EPOLLOUT | unix.EPOLLET

// eventsAtOnce is how many events one system call returns.
const eventsAtOnce = 256

// poller watches any number of connections with one epoll set. The set is itself watched by Go's netpoller, so that no
// thread waits for it.
type poller struct {
	file *os.File
	raw  syscall.RawConn

	mu      sync.Mutex
	last    uint64
	watched map[uint64]watched // by key, which is never used again
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create epoll set: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("create epoll set: %w", err)
	}
	file := os.NewFile(uintptr(fd), "epoll")
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("create epoll set: %w", err)
	}
	return &poller{file: file, raw: raw, watched: map[uint64]watched{}}, nil
}

// run reports events until ctx ends.
func (p *poller) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = p.file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	events := make([]unix.EpollEvent, eventsAtOnce)
	var failure error
	err := p.raw.Read(func(epoll uintptr) bool {
		failure = p.report(int(epoll), events)
		return failure != nil
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case failure != nil:
		err = failure
	}
	return fmt.Errorf("sink: watch connections: %w", err)
}

// report reports the events that there are.
func (p *poller) report(epoll int, events []unix.EpollEvent) error {
	for {
		n, err := unix.EpollWait(epoll, events, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n == 0:
			return nil
		}
		for i := range events[:n] {
			e := &events[i]
			w := p.find(key(e))
			if w == nil {
				continue // it was removed after the event was taken
			}
			if e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
				w.hungUp()
			} else if e.Events&unix.EPOLLOUT != 0 {
				w.writable()
			}
		}
	}
}

func (p *poller) find(k uint64) watched {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.watched[k]
}

// add starts to watch the connection on behalf of w and returns the key for remove.
func (p *poller) add(conn syscall.RawConn, w watched) (uint64, error) {
	p.mu.Lock()
	p.last++
	k := p.last
	p.watched[k] = w
	p.mu.Unlock()
	event := unix.EpollEvent{Events: watchedEvents}
	setKey(&event, k)
	if err := p.control(conn, unix.EPOLL_CTL_ADD, &event); err != nil {
		p.forget(k)
		return 0, fmt.Errorf("watch connection: %w", err)
	}
	return k, nil
}

// remove stops watching the connection. An event that is being reported may still arrive.
func (p *poller) remove(conn syscall.RawConn, k uint64) {
	p.forget(k)
	// A descriptor that is closed already has left the set by that.
	_ = p.control(conn, unix.EPOLL_CTL_DEL, &unix.EpollEvent{})
}

func (p *poller) forget(k uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watched, k)
}

// control changes the set, with both descriptors held open.
func (p *poller) control(conn syscall.RawConn, op int, event *unix.EpollEvent) error {
	var errSet, errConn error
	err := p.raw.Control(func(epoll uintptr) {
		errConn = conn.Control(func(fd uintptr) {
			errSet = unix.EpollCtl(int(epoll), op, int(fd), event)
		})
	})
	return errors.Join(err, errConn, errSet)
}

func (p *poller) close() error {
	if err := p.file.Close(); err != nil {
		return fmt.Errorf("sink: close epoll set: %w", err)
	}
	return nil
}

// setKey puts the key into the data of an event.
func setKey(e *unix.EpollEvent, k uint64) {
	e.Fd = int32(uint32(k))
	e.Pad = int32(uint32(k >> 32))
}

// key returns the key in the data of an event.
func key(e *unix.EpollEvent) uint64 {
	return uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32
}

// watch has w told when the peer hangs up. conn without a descriptor is read from for that.
func (s *Set) watch(conn net.Conn, raw syscall.RawConn, w watched) (unwatch func(), err error) {
	if raw == nil {
		return s.watchByReading(conn, w)
	}
	k, err := s.poller.add(raw, w)
	if err != nil {
		return nil, err
	}
	return func() { s.poller.remove(raw, k) }, nil
}

// tune sets the options of a stream's socket. A system that lacks one does without.
func tune(raw syscall.RawConn, peerTimeout time.Duration) {
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(peerTimeout.Milliseconds()))
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes)
	})
}
