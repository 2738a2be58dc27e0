package hub

// Waiting returns how many bytes wait for readers.
func (h *Hub) Waiting() int64 { return h.backlog.bytes.Load() }

// Unannounced returns how many changes of subscriptions wait to be announced.
func (h *Hub) Unannounced() int {
	h.roster.mu.Lock()
	defer h.roster.mu.Unlock()
	return len(h.roster.queue) - h.roster.head
}
