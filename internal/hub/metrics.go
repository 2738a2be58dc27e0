package hub

// Metrics is where the engine counts. Every method is called on the hot path, from several
// goroutines at once, and must neither block nor allocate.
type Metrics interface {
	// Subscribers changes the number of open streams by delta.
	Subscribers(delta int)
	// Published counts an update that the history has acknowledged.
	Published()
	// Announced counts n subscription events that the history has acknowledged.
	Announced(n int)
	// Delivered counts n events that were queued live for readers, once per reader.
	Delivered(n int)
	// Replayed counts n events that were queued for readers from the history.
	Replayed(n int)
	// Cut counts a stream that the hub ended. The reason is one of "expired" (the token), "lifetime", "drained", "closed"
	// (by CloseBy, CloseAnonymous or Subscriber.End), "stopped", "write_timeout" (the reader took nothing), "history_gone" (what the reader lacked has
	// been trimmed), "history_reset" (positions lost their meaning) and "history_error".
	Cut(reason string)
	// Dropped counts n events that left a slow reader's queue unsent. The reader gets them from
	// the history instead.
	Dropped(n int)
}

// noMetrics counts nothing.
type noMetrics struct{}

func (noMetrics) Subscribers(int) {}
func (noMetrics) Published()      {}
func (noMetrics) Announced(int)   {}
func (noMetrics) Delivered(int)   {}
func (noMetrics) Replayed(int)    {}
func (noMetrics) Cut(string)      {}
func (noMetrics) Dropped(int)     {}
