package segments

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/feed"
	"github.com/cinnabar-hub/cinnabar/internal/private"
)

// errReading is why nothing can be appended to a log that was opened so.
var errReading = errors.New("segments: opened for reading alone")

// Open opens the store in o.Dir, makes it if there is none, and locks it until Close. The context bounds the opening,
// and the waiting for another process that has the store. Errors: history.ErrLocked, ErrForeignFile, ErrNewerFormat and
// ErrCorrupt, private.ErrLoose, fs.ErrNotExist for reading alone where there is no store, and those of the file system;
// Open changes nothing then.
func Open(ctx context.Context, o Options) (*Log, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	d, err := openWaiting(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("open segments: %w", err)
	}
	seed := maphash.MakeSeed()
	hash := func(id string) uint64 { return maphash.String(seed, id) }
	l, err := open(ctx, o, d, hash)
	if err != nil {
		return nil, fmt.Errorf("open segments: %w", err)
	}
	return l, nil
}

// open opens the store in a folder, which it closes when it fails.
func open(ctx context.Context, o Options, f folder, hash func(string) uint64) (*Log, error) {
	l := &Log{
		o: o.withDefaults(), folder: f, hash: hash, queue: newQueue(),
		quit: make(chan struct{}), tidy: make(chan struct{}, 1),
	}
	if err := l.load(ctx); err != nil {
		return nil, errors.Join(err, l.closeFiles())
	}
	l.feed = feed.New(feed.Options{
		BufferBytes: o.TailBufferBytes, LagBytes: o.TailLagBytes, Patience: o.AppendPatience,
	}, l.last)
	if l.o.ReadOnly {
		l.failed = errReading
	}
	if l.o.MaxAge > 0 {
		l.expire(time.Now())
	}
	l.workers.Add(2)
	go l.runCommitter()
	go l.runJanitor()
	l.wakeJanitor()
	return l, nil
}

// load reads the store. Nothing is changed before everything was found in order.
func (l *Log) load(ctx context.Context) error {
	names, temps, err := l.list()
	if err != nil {
		return err
	}
	found, err := l.scanAll(ctx, names)
	for _, s := range found {
		if s != nil {
			l.segments = append(l.segments, s.segment)
		}
	}
	if err != nil {
		return err
	}
	if err := checkSequence(found); err != nil {
		return err
	}
	for _, name := range temps {
		if l.o.ReadOnly {
			break
		}
		if err := l.removeIfThere(name); err != nil {
			return err
		}
	}
	switch {
	case len(found) > 0:
		return l.resume(found[len(found)-1])
	case l.o.ReadOnly:
		return fmt.Errorf("%w: the folder holds no history", fs.ErrNotExist)
	}
	return l.initialise()
}

// list returns the names of the segments in order, and of those that were never finished.
func (l *Log) list() (names, temps []string, err error) {
	files, err := l.folder.List()
	if err != nil {
		return nil, nil, err
	}
	for _, f := range files {
		name := f.Name()
		if name == lockName || name == "lost+found" || strings.HasPrefix(name, ".") {
			continue
		}
		_, isSegment := parseSegmentName(name)
		_, isTemp := parseSegmentName(strings.TrimSuffix(name, tempSuffix))
		if !f.Type().IsRegular() || !isSegment && !isTemp {
			return nil, nil, fmt.Errorf("%w: %s", history.ErrForeignFile, name)
		}
		if err := l.checkRights(f); err != nil {
			return nil, nil, err
		}
		if isSegment {
			names = append(names, name)
		} else {
			temps = append(temps, name)
		}
	}
	slices.Sort(names)
	return names, temps, nil
}

// checkRights refuses a file that other users have rights on. Rights of the group are left to the operator: who mounts
// volumes for a container often grants them.
func (l *Log) checkRights(f fs.DirEntry) error {
	info, err := f.Info()
	if err != nil {
		return err
	}
	return private.CheckRights(filepath.Join(l.o.Dir, f.Name()), info, othersMask)
}

// scanAll reads the segments, several at a time. It returns those it opened also when it fails.
func (l *Log) scanAll(ctx context.Context, names []string) ([]*scanned, error) {
	found := make([]*scanned, len(names))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		g.Go(func() error {
			f, err := l.folder.Open(name)
			if err != nil {
				return err
			}
			found[i] = &scanned{segment: &segment{name: name, file: f}}
			if err := found[i].scan(ctx, l.hash, i == len(names)-1); err != nil {
				if errors.Is(err, fs.ErrNotExist) {
					err = fmt.Errorf("%w: %w", history.ErrCorrupt, err)
				}
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	return found, g.Wait()
}

// checkSequence checks that the segments follow each other and belong to one store.
func checkSequence(found []*scanned) error {
	for i := 1; i < len(found); i++ {
		a, b := found[i-1], found[i]
		switch {
		case a.store != b.store:
			return fmt.Errorf("%w: %s and %s are of different stores", history.ErrForeignFile, a.name, b.name)
		case a.last()+1 != b.base:
			return fmt.Errorf("%w: records %d to %d, before %s, are missing", history.ErrCorrupt, a.last()+1, b.base-1, b.name)
		}
	}
	return nil
}

// initialise makes an empty store.
func (l *Log) initialise() error {
	_, _ = rand.Read(l.store[:]) // never fails: crypto/rand aborts the program instead
	s, err := l.createSegment(1)
	if err != nil {
		return err
	}
	l.segments, l.bytes, l.committer.segment = []*segment{s}, s.size, s
	l.setFirst()
	return nil
}

// resume goes on with the store whose last segment is given.
func (l *Log) resume(s *scanned) error {
	if !l.o.ReadOnly {
		if err := l.mend(s); err != nil {
			return err
		}
	}
	l.store = s.store
	for _, x := range l.segments {
		l.bytes += x.size
	}
	l.last, l.lastID = s.last(), s.lastID
	l.committer.segment, l.committer.millis = s.segment, s.newest
	l.trim()
	return nil
}

// mend makes the last segment one that can be appended to.
func (l *Log) mend(s *scanned) error {
	if s.torn != nil {
		l.o.Logger.Warn("history ended with an unfinished write, which was cut off",
			slog.String("segment", s.name), slog.Int64("offset", s.size), slog.String("reason", s.torn.Error()))
		if err := s.file.Truncate(s.size); err != nil {
			return err
		}
	}
	// Records that were written but not synced when the process died are readable now, and the
	// next commits rest on them. So may the segment's name have been given and not synced, and with it all that
	// is written to it from now on would be lost.
	return errors.Join(s.file.Sync(), l.folder.Sync())
}
