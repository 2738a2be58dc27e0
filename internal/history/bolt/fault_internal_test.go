package bolt

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/durable"
)

func testLog(t *testing.T, o Options) *Log {
	t.Helper()
	o.Dir = filepath.Join(t.TempDir(), "history")
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func testRecord(id string) *history.Record {
	return &history.Record{ID: id, Topics: []string{"https://example.com/" + id}, Event: []byte("data: x\n\n")}
}

// After a write that failed, nobody can tell what is on the disk: the log is read-only, shows what was acknowledged, and is whole when it
// has been opened again.
func TestAppend_failedWrite(t *testing.T) {
	var said bytes.Buffer
	l := testLog(t, Options{Logger: slog.New(slog.NewTextHandler(&said, nil))})
	if _, err := l.Append(t.Context(), testRecord("a")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(durable.Unlock(l.file), l.file.Close()); err != nil { // the disk goes
		t.Fatal(err)
	}
	for _, id := range []string{"b", "c"} {
		if _, err := l.Append(t.Context(), testRecord(id)); !errors.Is(err, history.ErrReadOnly) {
			t.Errorf("Append() = %v, want ErrReadOnly", err)
		}
		if _, err := l.Seek(t.Context(), id); !errors.Is(err, history.ErrUnknownID) {
			t.Errorf("Seek(%s) = %v, want ErrUnknownID", id, err)
		}
	}
	if err := l.Ready(t.Context()); !errors.Is(err, history.ErrReadOnly) {
		t.Errorf("Ready() = %v, want ErrReadOnly", err)
	}
	if _, err := l.Compact(t.Context()); !errors.Is(err, history.ErrReadOnly) {
		t.Errorf("Compact() = %v, want ErrReadOnly", err)
	}
	page, err := l.Replay(t.Context(), history.Query{})
	if err != nil || len(page.Entries) != 1 || page.Entries[0].ID != "a" {
		t.Errorf("Replay() = %+v, %v, want what was acknowledged", page, err)
	}
	if n := strings.Count(said.String(), "history is read-only until it is reopened"); n != 1 {
		t.Errorf("the log says it %d times:\n%s", n, said.String())
	}
	_ = l.Close() // its file is closed already
	again, err := Open(t.Context(), Options{Dir: l.o.Dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	if p, err := again.Append(t.Context(), testRecord("d")); err != nil || p < 2 {
		t.Errorf("Append() = %d, %v after reopening", p, err)
	}
}

// A transaction in which bbolt panics ends the log's writing, not the process, and the log can be closed.
func TestAppend_panic(t *testing.T) {
	l := testLog(t, Options{})
	if _, err := l.Append(t.Context(), testRecord("a")); err != nil {
		t.Fatal(err)
	}
	err := l.update(func(*bbolt.Tx) error { panic("page 7 already freed") })
	if !errors.Is(err, history.ErrCorrupt) || !strings.Contains(err.Error(), "page 7 already freed") {
		t.Errorf("update() = %v, want ErrCorrupt", err)
	}
	if err := l.refused(err); !errors.Is(err, history.ErrReadOnly) || !errors.Is(err, history.ErrCorrupt) {
		t.Errorf("refused() = %v, want ErrReadOnly and ErrCorrupt", err)
	}
	if _, err := l.Append(t.Context(), testRecord("b")); !errors.Is(err, history.ErrReadOnly) {
		t.Errorf("Append() = %v, want ErrReadOnly", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	again, err := Open(t.Context(), Options{Dir: l.o.Dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// A compaction that fails leaves everything as it was.
func TestCompact_noPlace(t *testing.T) {
	l := testLog(t, Options{})
	if _, err := l.Append(t.Context(), testRecord("a")); err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(l.o.Dir, fileName+tempSuffix)
	if err := errors.Join(os.Mkdir(temp, 0o700), os.WriteFile(filepath.Join(temp, "x"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Compact(t.Context()); err == nil {
		t.Error("Compact() succeeded")
	}
	if err := os.RemoveAll(temp); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), testRecord("b")); err != nil {
		t.Errorf("Append() = %v", err)
	}
	if c, err := l.Compact(t.Context()); err != nil || c.After == 0 {
		t.Errorf("Compact() = %+v, %v", c, err)
	}
}

// When the file cannot be opened again after a compaction, everything is an error that says so.
func TestExchange_gone(t *testing.T) {
	l := testLog(t, Options{})
	if _, err := l.Append(t.Context(), testRecord("a")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.o.Dir, fileName+tempSuffix), []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.exchange(); !errors.Is(err, history.ErrReadOnly) || !errors.Is(err, history.ErrForeignFile) {
		t.Errorf("exchange() = %v, want ErrReadOnly and ErrForeignFile", err)
	}
	_, appendErr := l.Append(t.Context(), testRecord("b"))
	_, seekErr := l.Seek(t.Context(), "a")
	_, replayErr := l.Replay(t.Context(), history.Query{})
	for what, err := range map[string]error{"Append": appendErr, "Seek": seekErr, "Replay": replayErr} {
		if !errors.Is(err, history.ErrReadOnly) {
			t.Errorf("%s() = %v, want ErrReadOnly", what, err)
		}
	}
}

// A compacted file whose name may not last takes no appends: after a loss of power they would not be in the one that is there.
func TestExchange_nameNotDurable(t *testing.T) {
	l := testLog(t, Options{})
	if _, err := l.Append(t.Context(), testRecord("a")); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("the disk goes")
	l.folder.sync = func() error { return failure }
	if _, err := l.Compact(t.Context()); !errors.Is(err, history.ErrReadOnly) || !errors.Is(err, failure) {
		t.Errorf("Compact() = %v, want ErrReadOnly and the failure", err)
	}
	if _, err := l.Append(t.Context(), testRecord("b")); !errors.Is(err, history.ErrReadOnly) {
		t.Errorf("Append() = %v, want ErrReadOnly", err)
	}
	if p, err := l.Seek(t.Context(), "a"); p != 1 || err != nil {
		t.Errorf("Seek() = %d, %v, want what was acknowledged", p, err)
	}
}

// A compacted file that does not get its name is removed.
func TestExchange_notNamed(t *testing.T) {
	l := testLog(t, Options{})
	if _, err := l.Append(t.Context(), testRecord("a")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(l.o.Dir, fileName)
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil { // nothing is renamed to a folder
		t.Fatal(err)
	}
	if _, err := l.Compact(t.Context()); !errors.Is(err, history.ErrReadOnly) {
		t.Errorf("Compact() = %v, want ErrReadOnly", err)
	}
	if _, err := os.Stat(path + tempSuffix); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat() = %v, want no unfinished file", err)
	}
}

// countdown is a context that calls a function when it has been asked so often whether it has ended, and ends much later.
type countdown struct {
	context.Context

	left int
	then func()
}

func (c *countdown) Err() error {
	c.left--
	if c.left == 0 {
		c.then()
	}
	if c.left < -10_000 {
		return context.DeadlineExceeded
	}
	return c.Context.Err()
}

// Entries that a transaction has removed without the log being told, since it failed at its very end, do not keep Verify going for ever.
func TestVerify_trimmedUnnoticed(t *testing.T) {
	l := testLog(t, Options{})
	n := 0
	err := l.Import(t.Context(), func() (history.Stamped, error) {
		if n == verifySteps+100 {
			return history.Stamped{}, io.EOF
		}
		n++
		return history.Stamped{Record: *testRecord(strconv.Itoa(n))}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	trim := func() {
		next := l.committer.standing
		l.o.MaxEvents = 50
		err := l.update(func(tx *bbolt.Tx) error {
			return errors.Join(l.trim(tx, &next, trimBounds{count: 2 * verifySteps, bytes: 1 << 30}), next.save(tx))
		})
		if err != nil {
			t.Error(err)
		}
	}
	// It is asked when the call begins, and before and within the first transaction.
	v, err := l.Verify(&countdown{Context: t.Context(), left: 2 + verifySteps/256 + 1, then: trim})
	if err != nil || v.Events != verifySteps+50 {
		t.Errorf("Verify() = %+v, %v", v, err)
	}
}

// A log that is opened counts as much of its file as in use as before it was closed: otherwise it would trim what the limit has room for.
func TestMeasure_reopened(t *testing.T) {
	l := testLog(t, Options{})
	n := 0
	err := l.Import(t.Context(), func() (history.Stamped, error) {
		if n == 5000 {
			return history.Stamped{}, io.EOF
		}
		n++
		r := testRecord(strconv.Itoa(n))
		r.Event = bytes.Repeat([]byte("x"), 3000)
		return history.Stamped{Record: *r}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for o := (Options{Dir: l.o.Dir, MaxEvents: 10}); ; o.MaxEvents = 0 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		used := l.committer.used
		if l, err = Open(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if o.MaxEvents == 0 {
			if got := l.committer.used; got != used {
				t.Errorf("%d bytes of the file are in use, before it was closed %d", got, used)
			}
			break
		}
		for {
			if s, err := l.Stats(t.Context()); err != nil {
				t.Fatal(err)
			} else if s.Bytes < 100_000 {
				break
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
