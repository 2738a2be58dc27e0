package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

const (
	maxConnections = 16
	headerTimeout  = 5 * time.Second
	idleTimeout    = 30 * time.Second
	maxHeaderBytes = 8 << 10
	// stallTimeout is how long a client may take nothing of a copy.
	stallTimeout = 30 * time.Second
	// statsTimeout bounds the answer to one question.
	statsTimeout = 10 * time.Second
	// stopGrace is how long answers that are under way may take when the server stops.
	stopGrace = 500 * time.Millisecond
)

// Service is what a server serves.
type Service struct {
	// History is the hub's log. What it can do beyond history.Log decides what is served: history.Inspector,
	// history.Backupper, history.Verifier and history.Compacter.
	History history.Log
	// Logger is told of copies and failures; nil means nobody.
	Logger *slog.Logger
}

// Server serves the control socket of a hub.
type Server struct {
	path    string
	service Service
	ln      *net.UnixListener
	own     fs.FileInfo // the socket's file
	http    *http.Server
	cancel  context.CancelFunc // ends the requests
	working chan struct{}      // holds a value while the history is copied, verified or compacted; capacity 1, nobody waits
	closing sync.Once
	closed  chan struct{} // closed when Close has done its work

	running  sync.WaitGroup // requests
	mu       sync.Mutex     // protects stopping, and running from growing after it
	stopping bool
}

// Listen binds a socket at path with mode 0600, which nobody serves before Serve. It replaces a socket on which nobody
// listens. Errors: ErrInUse, ErrNotSocket, ErrPathTooLong, private.ErrLoose when other users may write to the folder,
// and those of the file system.
//
// The caller has the history's lock by then, so that of two hubs with one history the second does not get here.
func Listen(ctx context.Context, path string, s Service) (*Server, error) {
	if s.History == nil {
		return nil, errors.New("control: no history given")
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	ln, err := listen(ctx, path)
	if err != nil {
		return nil, err
	}
	own, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), ln.Close())
	}
	v := &Server{path: path, service: s, ln: ln, own: own, working: make(chan struct{}, 1), closed: make(chan struct{})}
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	v.cancel = cancel
	v.http = &http.Server{
		Handler:           v.handler(),
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug),
	}
	return v, nil
}

// Serve serves until the context ends or Close is called; then it closes the server and returns nil. It returns an
// error when the socket fails. It must be called at most once.
func (v *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = v.Close() })
	defer stop()
	err := v.http.Serve(netutil.LimitListener(v.ln, maxConnections))
	if !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(fmt.Errorf("serve control socket: %w", err), v.Close())
	}
	<-v.closed
	return nil
}

// Close ends the server and what it is doing, waits for its goroutines, and removes the socket. Answers that are under
// way get half a second; a copy that is being taken fails. The history must still be open. Further calls wait for the
// first and return nil.
func (v *Server) Close() error {
	var err error
	v.closing.Do(func() { err = v.close(); close(v.closed) })
	return err
}

func (v *Server) close() error {
	v.mu.Lock()
	v.stopping = true
	v.mu.Unlock()
	v.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	err := v.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = v.http.Close()
	}
	_ = v.ln.Close() // closed already when it was served
	v.running.Wait()
	return errors.Join(err, v.remove())
}

// begin counts a request in, which must call v.running.Done when it returns true.
func (v *Server) begin() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.stopping {
		v.running.Add(1)
	}
	return !v.stopping
}

// remove removes the socket, unless it has become somebody else's.
func (v *Server) remove() error {
	info, err := os.Lstat(v.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, v.own) {
		return nil
	}
	if err == nil {
		err = os.Remove(v.path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove control socket: %w", err)
	}
	return nil
}
