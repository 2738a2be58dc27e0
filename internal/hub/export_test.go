package hub

// Waiting returns how many bytes wait for readers.
func (h *Hub) Waiting() int64 { return h.backlog.bytes.Load() }
