package sink

// watched is a sink as the poller sees it. Its methods are called from the poller's goroutine and do not block.
type watched interface {
	// writable says that the kernel takes more.
	writable()
	// hungUp says that the peer has closed its side, or that the connection is broken.
	hungUp()
}
