package control_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/cinnabar-hub/cinnabar/internal/control"
	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/memory"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
	"github.com/cinnabar-hub/cinnabar/internal/private"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// socketPath returns a path for a socket, short enough for every system.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl") //nolint:usetesting // the names of tests would make it too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "hub.sock")
}

func openLog(t *testing.T, count int) *segments.Log {
	t.Helper()
	log, err := segments.Open(t.Context(), segments.Options{Dir: filepath.Join(t.TempDir(), "history"), SegmentBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	const writers = 50 // share the syncs
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := w; n < count; n += writers {
				if _, err := log.Append(t.Context(), &history.Record{ID: fmt.Sprint("id-", n), Topics: []string{"t"}, Event: make([]byte, 1000)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return log
}

// serve serves a history until the test ends or the returned function is called.
func serve(t *testing.T, path string, log history.Log) (stop func()) {
	t.Helper()
	s, err := control.Listen(t.Context(), path, control.Service{History: log})
	if err != nil {
		t.Fatalf("Listen() = %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve() = %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func dial(t *testing.T, path string) *control.Client {
	t.Helper()
	c, err := control.Dial(t.Context(), path)
	if err != nil {
		t.Fatalf("Dial() = %v", err)
	}
	return c
}

// received is a file of a copy.
type received struct {
	content bytes.Buffer
	err     error // of writing
}

func (f *received) Write(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.content.Write(p)
}

func (f *received) Close() error { return nil }

type receiver map[string]*received

func (r receiver) create(name string, _ int64) (io.WriteCloser, error) {
	r[name] = &received{}
	return r[name], nil
}

func TestStats(t *testing.T) {
	for name, log := range map[string]history.Log{"segments": openLog(t, 10), "memory": openMemory(t)} {
		t.Run(name, func(t *testing.T) {
			path := socketPath(t)
			serve(t, path, log)
			inspector, ok := log.(history.Inspector)
			if !ok {
				t.Fatal("the log has no statistics")
			}
			want, err := inspector.Stats(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got, err := dial(t, path).Stats(t.Context())
			if !got.FirstAt.Equal(want.FirstAt) || !got.LastAt.Equal(want.LastAt) {
				t.Errorf("Stats() has times %v and %v, want %v and %v", got.FirstAt, got.LastAt, want.FirstAt, want.LastAt)
			}
			got.FirstAt, got.LastAt = want.FirstAt, want.LastAt // the monotonic clock is not sent
			if err != nil || got != want {
				t.Errorf("Stats() = %+v, %v, want %+v", got, err, want)
			}
		})
	}
}

func openMemory(t *testing.T) history.Log {
	t.Helper()
	log, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	if _, err := log.Append(t.Context(), &history.Record{ID: "a", Topics: []string{"t"}}); err != nil {
		t.Fatal(err)
	}
	return log
}

func TestBackup(t *testing.T) {
	path := socketPath(t)
	serve(t, path, openLog(t, 500))
	files := receiver{}
	if err := dial(t, path).Backup(t.Context(), files.create); err != nil {
		t.Fatalf("Backup() = %v", err)
	}
	if len(files) < 5 {
		t.Fatalf("the copy has %d files", len(files))
	}
	dir := t.TempDir()
	for name, f := range files {
		if err := os.WriteFile(filepath.Join(dir, name), f.content.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	restored, err := segments.Open(t.Context(), segments.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = restored.Close() }()
	if h, err := restored.Head(t.Context()); err != nil || h.Last != 500 {
		t.Errorf("Head() = %+v, %v, want 500 records", h, err)
	}
}

func TestBackup_fails(t *testing.T) {
	broken := errors.New("broken")
	path := socketPath(t)
	log := openLog(t, 500)
	stop := serve(t, path, log)
	c := dial(t, path)
	// copies takes a copy, once the hub has noticed that the last one was given up.
	copies := func(ctx context.Context, create history.CreateFile) error {
		for {
			if err := c.Backup(ctx, create); !errors.Is(err, control.ErrBusy) {
				return err
			}
		}
	}
	t.Run("where a file cannot be made", func(t *testing.T) {
		if err := copies(t.Context(), func(string, int64) (io.WriteCloser, error) { return nil, broken }); !errors.Is(err, broken) {
			t.Errorf("Backup() = %v, want the error", err)
		}
	})
	t.Run("where a file cannot be written", func(t *testing.T) {
		err := copies(t.Context(), func(string, int64) (io.WriteCloser, error) { return &received{err: broken}, nil })
		if !errors.Is(err, broken) || errors.Is(err, control.ErrIncomplete) {
			t.Errorf("Backup() = %v, want the error", err)
		}
	})
	t.Run("with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		err := copies(ctx, func(string, int64) (io.WriteCloser, error) { cancel(); return &received{}, nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Backup() = %v, want the context's error", err)
		}
	})
	t.Run("while another copy is taken", func(t *testing.T) {
		first := true
		files := receiver{}
		err := copies(t.Context(), func(name string, size int64) (io.WriteCloser, error) {
			if first {
				first = false
				if err := c.Backup(t.Context(), receiver{}.create); !errors.Is(err, control.ErrBusy) {
					t.Errorf("Backup() = %v, want ErrBusy", err)
				}
			}
			return files.create(name, size)
		})
		if err != nil {
			t.Errorf("Backup() = %v", err)
		}
	})
	t.Run("when the hub stops", func(t *testing.T) {
		err := copies(t.Context(), func(name string, size int64) (io.WriteCloser, error) {
			stop()
			return receiver{}.create(name, size)
		})
		if !errors.Is(err, control.ErrIncomplete) {
			t.Errorf("Backup() = %v, want ErrIncomplete", err)
		}
	})
	t.Run("when no hub runs", func(t *testing.T) {
		if _, err := control.Dial(t.Context(), path); !errors.Is(err, control.ErrNotRunning) {
			t.Errorf("Dial() = %v, want ErrNotRunning", err)
		}
	})
}

// failing is a log whose copies fail in their midst.
type failing struct{ *segments.Log }

func (f failing) Backup(_ context.Context, create history.CreateFile) error {
	w, err := create("0000000000000001.seg", 100)
	if err != nil {
		return err
	}
	_, err = w.Write(make([]byte, 10))
	return errors.Join(err, fmt.Errorf("%w: a record\nof two lines", history.ErrCorrupt))
}

func TestBackup_saysWhyItFailed(t *testing.T) {
	path := socketPath(t)
	serve(t, path, failing{openLog(t, 1)})
	err := dial(t, path).Backup(t.Context(), receiver{}.create)
	if !errors.Is(err, control.ErrIncomplete) || !strings.Contains(err.Error(), "store is damaged: a record") {
		t.Errorf("Backup() = %v, want ErrIncomplete and why", err)
	}
}

func TestBackup_notSupported(t *testing.T) {
	path := socketPath(t)
	serve(t, path, openMemory(t))
	if err := dial(t, path).Backup(t.Context(), receiver{}.create); !errors.Is(err, control.ErrUnsupported) {
		t.Errorf("Backup() = %v, want ErrUnsupported", err)
	}
}

func TestListen_modes(t *testing.T) {
	needs.PermissionBits(t)
	path := filepath.Join(filepath.Dir(socketPath(t)), "new", "hub.sock")
	serve(t, path, openMemory(t))
	for name, want := range map[string]fs.FileMode{path: fs.ModeSocket | 0o600, filepath.Dir(path): fs.ModeDir | 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("Stat(%s) = %v, %v, want mode %v", name, info.Mode(), err, want)
		}
	}
	loose := socketPath(t)
	if err := os.Chmod(filepath.Dir(loose), 0o703); err != nil {
		t.Fatal(err)
	}
	if _, err := control.Listen(t.Context(), loose, control.Service{History: openMemory(t)}); !errors.Is(err, private.ErrLoose) {
		t.Errorf("Listen() = %v in a folder that others may write to, want ErrLoose", err)
	}
}

func TestListen_place(t *testing.T) {
	log := openMemory(t)
	listen := func(t *testing.T, path string) (*control.Server, error) {
		t.Helper()
		s, err := control.Listen(t.Context(), path, control.Service{History: log})
		if err == nil {
			t.Cleanup(func() { _ = s.Close() })
		}
		return s, err
	}
	t.Run("a socket that somebody listens on is refused", func(t *testing.T) {
		path := socketPath(t)
		serve(t, path, log)
		if _, err := listen(t, path); !errors.Is(err, control.ErrInUse) || !strings.Contains(err.Error(), "control_socket") {
			t.Errorf("Listen() = %v, want ErrInUse and the key", err)
		}
		if _, err := dial(t, path).Stats(t.Context()); err != nil {
			t.Errorf("Stats() = %v of the first one", err)
		}
	})
	t.Run("one of a process that was killed is replaced", func(t *testing.T) {
		path := socketPath(t)
		abandon(t, path)
		serve(t, path, log)
		if _, err := dial(t, path).Stats(t.Context()); err != nil {
			t.Errorf("Stats() = %v", err)
		}
	})
	t.Run("something else is left alone", func(t *testing.T) {
		path := socketPath(t)
		if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := listen(t, path); !errors.Is(err, control.ErrNotSocket) {
			t.Errorf("Listen() = %v, want ErrNotSocket", err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != "mine" {
			t.Errorf("ReadFile() = %q, %v", b, err)
		}
		if _, err := control.Dial(t.Context(), path); err == nil {
			t.Error("Dial() succeeds")
		}
	})
	t.Run("a name that is too long says so, and which key", func(t *testing.T) {
		path := filepath.Join(filepath.Dir(socketPath(t)), strings.Repeat("a", 120))
		for name, err := range map[string]error{
			"Listen": second(listen(t, path)), "Dial": second(control.Dial(t.Context(), path)),
		} {
			if !errors.Is(err, control.ErrPathTooLong) || !strings.Contains(err.Error(), "control_socket") {
				t.Errorf("%s() = %v, want ErrPathTooLong and the key", name, err)
			}
		}
	})
	t.Run("a folder may lie deeper than the addresses of sockets reach", func(t *testing.T) {
		needs.SymbolicLinks(t)
		temp := filepath.Dir(socketPath(t))
		t.Setenv("TMPDIR", temp)
		path := filepath.Join(filepath.Dir(socketPath(t)), strings.Repeat("a", 60), strings.Repeat("b", 60), "hub.sock")
		if _, err := control.Dial(t.Context(), path); !errors.Is(err, control.ErrNotRunning) {
			t.Errorf("Dial() = %v before, want ErrNotRunning", err)
		}
		stop := serve(t, path, log)
		if _, err := listen(t, path); !errors.Is(err, control.ErrInUse) {
			t.Errorf("Listen() = %v a second time, want ErrInUse", err)
		}
		if _, err := dial(t, path).Stats(t.Context()); err != nil {
			t.Errorf("Stats() = %v", err)
		}
		stop()
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Lstat() = %v after the end, want no socket", err)
		}
		if left, err := filepath.Glob(filepath.Join(temp, "hub-*")); err != nil || len(left) > 0 {
			t.Errorf("%q is left, %v", left, err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// abandon leaves a socket as a process does that is killed.
func abandon(t *testing.T, path string) {
	t.Helper()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestClose_removesItsOwnSocketAlone(t *testing.T) {
	path := socketPath(t)
	old, err := control.Listen(t.Context(), path, control.Service{History: openMemory(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	serve(t, path, openMemory(t)) // a successor's
	if err := old.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if err := old.Close(); err != nil {
		t.Errorf("Close() = %v the second time", err)
	}
	if _, err := dial(t, path).Stats(t.Context()); err != nil {
		t.Errorf("Stats() = %v of the successor", err)
	}
}

// Clients that hang hold up neither the others nor the end.
func TestServe_hangingClients(t *testing.T) {
	path := socketPath(t)
	log := openLog(t, 3000) // more than sockets buffer
	stop := serve(t, path, log)
	var hanging []net.Conn
	open := func(say string) {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", path)
		if err != nil {
			t.Fatal(err)
		}
		hanging = append(hanging, conn)
		if _, err := io.WriteString(conn, say); err != nil {
			t.Fatal(err)
		}
	}
	for range 7 {
		open("")
		open("GET /v1/sta")
	}
	open("GET /v1/backup HTTP/1.1\r\nHost: hub\r\n\r\n") // and reads no more than the beginning
	begun := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(hanging[len(hanging)-1], begun); err != nil || string(begun) != "HTTP/1.1 200" {
		t.Fatalf("the hub answers %q, %v", begun, err)
	}
	c := dial(t, path)
	for range 3 {
		if _, err := c.Stats(t.Context()); err != nil {
			t.Errorf("Stats() = %v", err)
		}
	}
	if err := c.Backup(t.Context(), receiver{}.create); !errors.Is(err, control.ErrBusy) {
		t.Errorf("Backup() = %v beside a copy that nobody takes, want ErrBusy", err)
	}
	stop()
	if err := log.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	for _, conn := range hanging {
		_ = conn.Close()
	}
}

// No more connections are served than the bound; the next is when one ends.
func TestServe_bound(t *testing.T) {
	path := socketPath(t)
	serve(t, path, openMemory(t))
	c := dial(t, path)
	var idle []net.Conn
	for range 16 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		idle = append(idle, conn)
	}
	served := make(chan error, 1)
	go func() {
		_, err := c.Stats(t.Context())
		served <- err
	}()
	_ = idle[0].Close()
	if err := <-served; err != nil {
		t.Errorf("Stats() = %v", err)
	}
}

func TestServe_manyClients(t *testing.T) {
	path := socketPath(t)
	serve(t, path, openLog(t, 100))
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			c, err := control.Dial(t.Context(), path)
			if err != nil {
				t.Errorf("Dial() = %v", err)
				return
			}
			if s, err := c.Stats(t.Context()); err != nil || s.Events != 100 {
				t.Errorf("Stats() = %+v, %v", s, err)
			}
		})
	}
	wg.Wait()
}

// impostor serves something else than a hub on a socket.
func impostor(t *testing.T, h http.HandlerFunc) *control.Client {
	t.Helper()
	path := socketPath(t)
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(ln) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return dial(t, path)
}

func TestClient_otherServers(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   error
	}{
		"something else": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }, control.ErrProtocol},
		"a newer hub": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cinnabar-Control", "hub/2")
			w.WriteHeader(http.StatusNotFound)
		}, control.ErrProtocol},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cinnabar-Control", "hub/1")
			http.Redirect(w, r, "http://example.com/", http.StatusFound)
		}, control.ErrProtocol},
		"no JSON": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cinnabar-Control", "hub/1")
			_, _ = io.WriteString(w, "<html>")
		}, control.ErrProtocol},
		"JSON without an end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cinnabar-Control", "hub/1")
			_, _ = io.WriteString(w, `{"driver":"`+strings.Repeat("x", 1<<20))
		}, control.ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := impostor(t, tc.answer).Stats(t.Context()); !errors.Is(err, tc.want) {
				t.Errorf("Stats() = %+v, %v, want %v", s, err, tc.want)
			}
		})
	}
}

// The client passes nothing on that is no plain file, and takes no copy for complete that does not say so.
func TestClient_hostileCopies(t *testing.T) {
	plain := tar.Header{Typeflag: tar.TypeReg, Name: "0000000000000001.seg", Size: 5, Mode: 0o600, Format: tar.FormatUSTAR}
	changed := func(change func(*tar.Header)) []tar.Header {
		h := plain
		change(&h)
		return []tar.Header{h}
	}
	for name, tc := range map[string]struct {
		headers []tar.Header
		status  string
		want    error
	}{
		"a link":             {changed(func(h *tar.Header) { h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, "/etc/passwd", 0 }), "complete", control.ErrProtocol},
		"a folder":           {changed(func(h *tar.Header) { h.Typeflag, h.Name, h.Size = tar.TypeDir, "dir/", 0 }), "complete", control.ErrProtocol},
		"a device":           {changed(func(h *tar.Header) { h.Typeflag, h.Size = tar.TypeChar, 0 }), "complete", control.ErrProtocol},
		"an extended header": {changed(func(h *tar.Header) { h.Format, h.PAXRecords = tar.FormatPAX, map[string]string{"a.b": "c"} }), "complete", control.ErrProtocol},
		"a GNU header":       {changed(func(h *tar.Header) { h.Format = tar.FormatGNU }), "complete", control.ErrProtocol},
		"no status":          {[]tar.Header{plain}, "", control.ErrIncomplete},
		"another status":     {[]tar.Header{plain}, "almost", control.ErrIncomplete},
		"nothing wrong":      {[]tar.Header{plain}, "complete", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := impostor(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cinnabar-Control", "hub/1")
				w.Header().Set("Trailer", "Cinnabar-Status")
				archive := tar.NewWriter(w)
				for _, h := range tc.headers {
					if err := archive.WriteHeader(&h); err != nil {
						t.Error(err)
					}
					_, _ = archive.Write(make([]byte, h.Size))
				}
				_ = archive.Close()
				if tc.status != "" {
					w.Header().Set("Cinnabar-Status", tc.status)
				}
			})
			files := receiver{}
			if err := c.Backup(t.Context(), files.create); !errors.Is(err, tc.want) {
				t.Errorf("Backup() = %v, want %v", err, tc.want)
			}
			if errors.Is(tc.want, control.ErrProtocol) && len(files) > 0 {
				t.Errorf("%d files were made", len(files))
			}
		})
	}
}
