package segments

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/durable"
	"github.com/cinnabar-hub/cinnabar/internal/history/feed"
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
	d, err := openDir(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("open segments: %w", err)
	}
	l, err := open(ctx, o, d, hashID)
	if err != nil {
		return nil, fmt.Errorf("open segments: %w", err)
	}
	return l, nil
}

// open opens the store in a folder, which it closes when it fails.
func open(ctx context.Context, o Options, f folder, hash hashFunc) (*Log, error) {
	o = o.withDefaults()
	l := &Log{
		o: o, folder: f, hash: hash, queue: newQueue(), health: durable.NewHealth(o.Dir, o.Logger),
		quit: make(chan struct{}), tidy: make(chan struct{}, 1),
	}
	if err := l.load(ctx); err != nil {
		return nil, errors.Join(err, l.closeFiles())
	}
	l.feed = feed.New(feed.Options{
		BufferBytes: o.TailBufferBytes, LagBytes: o.TailLagBytes, Patience: o.AppendPatience,
	}, l.last)
	if l.o.ReadOnly {
		l.health.Refuse(errReading)
	}
	if l.o.MaxAge > 0 {
		l.expire(time.Now())
	}
	tending, stop := context.WithCancel(context.WithoutCancel(ctx)) // until Close
	l.stop = stop
	l.workers.Add(2)
	go l.runCommitter()
	go l.runJanitor(tending)
	l.wakeJanitor()
	return l, nil
}

// load reads the store. Nothing is changed before everything was found in order.
func (l *Log) load(ctx context.Context) error {
	names, leftovers, err := l.list()
	if err != nil {
		return err
	}
	found, err := l.openAll(ctx, names)
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
	if err := l.removeAll(leftovers); err != nil {
		return err
	}
	switch {
	case len(found) > 0:
		return l.resume(ctx, found[len(found)-1])
	case l.o.ReadOnly:
		return fmt.Errorf("%w: the folder holds no history", fs.ErrNotExist)
	}
	return l.initialise()
}

// removeAll removes what is not needed, unless the store is for reading alone. The names of hollow segments are made durable before the
// segments go in whose place they are.
func (l *Log) removeAll(leftovers []string) error {
	if l.o.ReadOnly || len(leftovers) == 0 {
		return nil
	}
	if err := l.folder.Sync(); err != nil {
		return err
	}
	for _, name := range leftovers {
		if err := l.removeIfThere(name); err != nil {
			return err
		}
	}
	return nil
}

// withoutReplaced moves from the names of segments, which are in order, those in whose place there is a hollow one to the leftovers.
func withoutReplaced(names, leftovers []string) (kept, _ []string) {
	for _, name := range names {
		base, _ := parseSegmentName(name)
		if n := len(kept); n > 0 && kept[n-1] == hollowName(base) {
			leftovers = append(leftovers, name)
			continue
		}
		kept = append(kept, name)
	}
	return kept, leftovers
}

// list returns the names of the segments in order, and of what is not needed: files that were never finished, segments in whose place
// there is a hollow one, and indexes that no full segment has.
func (l *Log) list() (names, leftovers []string, err error) {
	var indexes []string
	files, err := l.folder.List()
	if err != nil {
		return nil, nil, err
	}
	for _, f := range files {
		name := f.Name()
		if name == durable.LockName || name == "lost+found" || strings.HasPrefix(name, ".") {
			continue
		}
		whole := strings.TrimSuffix(name, tempSuffix)
		_, isSegment := parseSegmentName(whole)
		_, isIndex := parseName(whole, indexSuffix)
		if !f.Type().IsRegular() || !isSegment && !isIndex {
			return nil, nil, fmt.Errorf("%w: %s", history.ErrForeignFile, name)
		}
		if err := l.checkRights(f); err != nil {
			return nil, nil, err
		}
		switch {
		case whole != name:
			leftovers = append(leftovers, name)
		case isSegment:
			names = append(names, name)
		default:
			indexes = append(indexes, name)
		}
	}
	slices.Sort(names)
	names, leftovers = withoutReplaced(names, leftovers)
	for _, name := range indexes {
		i, ok := slices.BinarySearch(names, strings.TrimSuffix(name, indexSuffix)+segmentSuffix)
		if !ok || i == len(names)-1 {
			leftovers = append(leftovers, name)
		}
	}
	return names, leftovers, nil
}

// checkRights refuses a file that other users have rights on.
func (l *Log) checkRights(f fs.DirEntry) error {
	info, err := f.Info()
	if err != nil {
		return err
	}
	return durable.CheckFile(filepath.Join(l.o.Dir, f.Name()), info)
}

// openAll opens the segments, several at a time, and reads the last one. It returns those it opened also when it fails.
func (l *Log) openAll(ctx context.Context, names []string) ([]*scanned, error) {
	found := make([]*scanned, len(names))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0) + 1)
	for i := range slices.Backward(names) { // the last one takes longest
		g.Go(func() error {
			name := names[i]
			f, err := l.folder.Open(name)
			if err != nil {
				return err
			}
			found[i] = &scanned{segment: &segment{name: name, hollow: strings.HasSuffix(name, hollowSuffix+segmentSuffix), file: f}}
			if err := l.openSegment(ctx, found[i], i == len(names)-1); err != nil {
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

// openSegment reads the last segment of a store. Of another one it reads the header and that of its index. A full segment whose
// index is missing, or not as it should be, is given one later; only if the index is that of the segment when it had another size, something
// has happened to the segment, and all of it is read.
func (l *Log) openSegment(ctx context.Context, s *scanned, isLast bool) error {
	if err := s.readHeader(); err != nil {
		return err
	}
	if isLast {
		return s.scan(ctx, l.hash, true)
	}
	x, err := l.openIndex(s.segment)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		l.o.Logger.Warn("history index cannot be used and is made again", slog.String("segment", s.name), slog.String("reason", err.Error()))
	case x.size != s.end:
		if err := errors.Join(s.scan(ctx, l.hash, false), x.close()); err != nil {
			return err
		}
		return nil
	default:
		s.index, s.count, s.size, s.indexed = x, x.count, s.end, int64(len(x.data))
		s.oldest, s.newest, s.events, s.spare = x.oldest, x.newest, x.events, x.spare
		return nil
	}
	return s.readFirst()
}

// readFirst reads the first record of a full segment that has no index.
func (s *scanned) readFirst() error {
	r := &recordReader{file: s.file, seed: s.seed, next: headerSize, end: s.end, want: fixedSize}
	v, err := r.read()
	if err == nil && v.position != s.base {
		err = recordError("position out of order")
	}
	var invalid recordError
	if errors.As(err, &invalid) || errors.Is(err, io.EOF) {
		return s.damaged(r, s.base, err)
	}
	s.size, s.oldest = s.end, v.millis
	return err
}

// checkSequence checks that the segments follow each other and belong to one store. How many records a full segment without an
// index has follows from the name of the next one.
func checkSequence(found []*scanned) error {
	if n := len(found); n > 0 && found[n-1].hollow {
		return fmt.Errorf("%w: records from %d on, behind %s, are missing", history.ErrCorrupt, found[n-1].last()+1, found[n-1].name)
	}
	for i := 1; i < len(found); i++ {
		a, b := found[i-1], found[i]
		if a.header.store != b.header.store {
			return fmt.Errorf("%w: %s and %s are of different stores", history.ErrForeignFile, a.name, b.name)
		}
		if a.count == 0 {
			count := min(b.base-a.base, maxSegmentRecords, history.Position(a.size-headerSize)/fixedSize)
			a.count = int(count)
			a.events = min(int(b.header.before), a.count)
			a.newest = b.begun()
		}
		if a.last()+1 != b.base {
			return fmt.Errorf("%w: records %d to %d, before %s, are missing", history.ErrCorrupt, a.last()+1, b.base-1, b.name)
		}
	}
	return nil
}

// begun returns a time, milliseconds, that is not before that of any record of the segment before.
func (s *scanned) begun() int64 {
	if s.oldest > 0 {
		return s.oldest
	}
	return s.header.created.UnixMilli()
}

// initialise makes an empty store.
func (l *Log) initialise() error {
	_, _ = rand.Read(l.store[:]) // never fails: crypto/rand aborts the program instead
	s, err := l.createSegment(1, 0)
	if err != nil {
		return err
	}
	l.segments, l.bytes, l.committer.segment = []*segment{s}, s.size, s
	l.setFirst()
	return nil
}

// resume goes on with the store whose last segment is given.
func (l *Log) resume(ctx context.Context, s *scanned) error {
	if !l.o.ReadOnly {
		if err := l.mend(s); err != nil {
			return err
		}
	}
	l.store = s.header.store
	for _, x := range l.segments {
		l.bytes += x.size + x.indexed
	}
	l.last, l.lastID = s.last(), string(s.lastID)
	l.committer.segment, l.committer.millis = s.segment, s.newest
	if err := l.recallLast(ctx); err != nil {
		return err
	}
	l.trim()
	l.passed = l.first - 1 // what was before is not known any more
	return nil
}

// recallLast finds out about the last record when it is not in the last segment, because that has none yet.
func (l *Log) recallLast(ctx context.Context) error {
	n := len(l.segments)
	if l.segments[n-1].count > 0 || n == 1 {
		return nil
	}
	s := l.segments[n-2]
	var at place
	if x := s.growing; x != nil {
		at = x.place(s.count-1, s.size)
	} else if err := l.withIndex(ctx, s, func(x *sealed) (err error) {
		at, err = x.place(x.count - 1)
		return err
	}); err != nil {
		return err
	}
	return l.readPlace(s, at, func(v *view) { l.lastID, l.committer.millis = string(v.id), v.millis })
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
