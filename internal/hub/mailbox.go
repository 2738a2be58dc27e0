package hub

import "sync"

// keptMessages is the capacity up to which an emptied mailbox keeps its memory.
const keptMessages = 4096

// mailbox is a queue with any number of senders, who never wait, and one receiver. What bounds it is what its
// senders may have under way; each mailbox says so where it is made.
type mailbox[T any] struct {
	// wake has capacity 1 and is never closed. A token in it says that the mailbox may hold something;
	// senders that find one there have nothing to add.
	wake chan struct{}

	mu     sync.Mutex
	items  []T
	closed bool
}

func newMailbox[T any]() *mailbox[T] {
	return &mailbox[T]{wake: make(chan struct{}, 1)}
}

// put adds item, or reports false when the receiver has closed the mailbox.
func (m *mailbox[T]) put(item T) bool {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return false
	}
	m.items = append(m.items, item)
	m.mu.Unlock()
	m.signal()
	return true
}

// putAll adds copies of items, as put does.
func (m *mailbox[T]) putAll(items []T) bool {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return false
	}
	m.items = append(m.items, items...)
	m.mu.Unlock()
	m.signal()
	return true
}

func (m *mailbox[T]) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take returns everything in the mailbox. spare, what an earlier take returned, is used again.
func (m *mailbox[T]) take(spare []T) []T {
	clear(spare)
	if cap(spare) > keptMessages {
		spare = nil
	}
	m.mu.Lock()
	items := m.items
	m.items = spare[:0]
	m.mu.Unlock()
	return items
}

// close refuses further items and returns those that are left.
func (m *mailbox[T]) close() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	items := m.items
	m.items = nil
	return items
}
