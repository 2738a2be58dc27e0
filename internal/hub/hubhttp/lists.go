package hubhttp

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
	"golang.org/x/sync/semaphore"

	"github.com/cinnabar-hub/cinnabar/internal/mercure"
)

// Bounds of what collections of subscriptions may cost at one moment, whoever asks.
const (
	// listsMaking is how many lists are made at a time: with a hundred thousand subscriptions one takes a processor for a moment.
	listsMaking = 2
	// listsWaiting is how long a request waits for its turn.
	listsWaiting = 30 * time.Second
	// listsBytes is how much memory the lists may take that wait for their readers.
	listsBytes = 64 << 20
	// listedBytes is what a subscription in a list takes beside its id.
	listedBytes = 128
	// documentChunk is about how many bytes of a document are written at a time, and documentPatience how long a reader may take for them.
	documentChunk    = 64 << 10
	documentPatience = 30 * time.Second
	// documentPace is how long a reader may take for every chunk of all before, beside that: some 32 KiB a second.
	documentPace = 2 * time.Second
)

// lists bounds the making of lists, and the memory of those that are being written: readers can be slow, and lists long. Who comes first is served
// first. It is safe for concurrent use.
type lists struct {
	making, memory          *semaphore.Weighted
	bytes                   int64 // of the memory
	waiting, patience, pace time.Duration
}

func newLists() *lists {
	return &lists{
		making: semaphore.NewWeighted(listsMaking), memory: semaphore.NewWeighted(listsBytes), bytes: listsBytes,
		waiting: listsWaiting, patience: documentPatience, pace: documentPace,
	}
}

// turn waits for n of what a semaphore gives, until the request has waited long enough. The errors are errManyLists and that of the request.
func turn(request, waiting context.Context, s *semaphore.Weighted, n int64) error {
	if s.Acquire(waiting, n) == nil {
		return nil
	}
	if err := request.Err(); err != nil {
		return err
	}
	return errManyLists
}

// made is a list whose document can be written. The caller calls free exactly once.
type made struct {
	cursor   string
	document *document
	free     func()
}

// listing gives a list and the cursor that goes with it, see hub.ActiveSubscriptions.
type listing func(ctx context.Context) (cursor string, list []mercure.Subscription, err error)

// make has the list at a path made when it is its turn, and finds memory for what does not fit into the first piece of its document. A list that
// has to wait for memory is made again when there is some, so that waiting takes none. One that is larger than all there is goes out alone. The
// errors are errManyLists, ctx's, and those of the listing.
func (l *lists) make(ctx context.Context, path string, list listing) (made, error) {
	waiting, cancel := context.WithTimeout(ctx, l.waiting)
	defer cancel()
	m, size, err := l.try(ctx, waiting, path, list)
	if err != nil {
		return made{}, err
	}
	if size > 0 && !l.memory.TryAcquire(size) {
		if err := turn(ctx, waiting, l.memory, size); err != nil {
			return made{}, err
		}
		if m, _, err = l.try(ctx, waiting, path, list); err != nil { // what has come meanwhile is not counted
			l.memory.Release(size)
			return made{}, err
		}
	}
	m.free = func() { l.memory.Release(size) }
	return m, nil
}

// try makes a list in the order of the ids, so that equal lists have equal documents, and tells how much memory it takes.
func (l *lists) try(ctx, waiting context.Context, path string, list listing) (m made, size int64, err error) {
	if err := turn(ctx, waiting, l.making, 1); err != nil {
		return made{}, 0, err
	}
	defer l.making.Release(1)
	cursor, subscriptions, err := list(ctx)
	if err != nil {
		return made{}, 0, err
	}
	slices.SortFunc(subscriptions, func(a, b mercure.Subscription) int { return cmp.Compare(a.ID, b.ID) })
	d := newDocument(path, subscriptions)
	for i := range d.rest {
		size += listedBytes + int64(len(d.rest[i].ID))
	}
	return made{cursor: cursor, document: d}, min(size, l.bytes), nil
}

// document is that of a collection, which goes out in pieces.
type document struct {
	piece []byte                 // the next one
	rest  []mercure.Subscription // what it does not hold yet; nil when the piece is the last one
}

// newDocument begins the document of a list, which the document keeps.
func newDocument(path string, list []mercure.Subscription) *document {
	d := &document{rest: list}
	d.piece = append(make([]byte, 0, min(documentChunk, 256*(len(list)+1))), `{"id":`...)
	d.piece, _ = jsontext.AppendQuote(d.piece, strings.ToValidUTF8(path, "\uFFFD")) // the one error is about UTF-8
	d.piece = append(d.piece, `,"type":"subscriptions","subscriptions":[`...)
	d.fill()
	return d
}

// fill appends subscriptions to the piece until it is large enough, or complete.
func (d *document) fill() {
	for i := range d.rest {
		if len(d.piece) >= documentChunk {
			d.rest = d.rest[i:]
			return
		}
		d.piece = append(d.rest[i].AppendJSON(d.piece), ',')
	}
	if last := len(d.piece) - 1; d.piece[last] == ',' {
		d.piece = d.piece[:last]
	}
	d.piece, d.rest = append(d.piece, "]}\n"...), nil
}

// write writes a document. A reader that is slower than it may be loses the connection, or the stream of HTTP/2; one that is gone is nobody to be
// told. The last deadline stays for what is still in buffers then: the server takes it away before the next request.
func (l *lists) write(w *echo.Response, d *document) {
	deadlines := http.NewResponseController(w.Writer)
	last := time.Now().Add(l.patience)
	for {
		deadline := time.Now().Add(l.patience)
		if deadline.After(last) {
			deadline = last
		}
		last = last.Add(l.pace)
		_ = deadlines.SetWriteDeadline(deadline) // an error means that the writer has none, as in tests with a recorder
		if _, err := w.Write(d.piece); err != nil || d.rest == nil {
			return
		}
		d.piece = d.piece[:0]
		d.fill()
	}
}
