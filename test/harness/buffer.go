package harness

import (
	"bytes"
	"strings"
	"sync"
	"time"
)

// tail is how much of a program's output a failure shows, in bytes.
const tail = 16 << 10

// Buffer keeps output and lets tests wait for text in it. Safe for concurrent use.
type Buffer struct {
	mu     sync.Mutex
	cond   *sync.Cond
	buf    bytes.Buffer
	closed bool
}

// NewBuffer gives an empty buffer.
func NewBuffer() *Buffer {
	b := &Buffer{}
	b.cond = sync.NewCond(&b.mu)
	return b
}

// Write appends.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cond.Broadcast()
	return b.buf.Write(p)
}

// Close tells those who wait that nothing more will come.
func (b *Buffer) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cond.Broadcast()
}

// String is everything so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Tail is the end of it, from the beginning of a line on.
func (b *Buffer) Tail() string {
	s := b.String()
	if len(s) <= tail {
		return s
	}
	s = s[len(s)-tail:]
	return "…\n" + s[strings.IndexByte(s, '\n')+1:]
}

// WaitFor waits until the text is there, and says whether it came.
func (b *Buffer) WaitFor(text string, d time.Duration) bool {
	late := false
	timer := time.AfterFunc(d, func() { b.mu.Lock(); late = true; b.mu.Unlock(); b.cond.Broadcast() })
	defer timer.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	for !strings.Contains(b.buf.String(), text) {
		if b.closed || late {
			return false
		}
		b.cond.Wait()
	}
	return true
}
