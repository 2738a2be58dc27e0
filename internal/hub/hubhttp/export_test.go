package hubhttp

import (
	"time"

	"golang.org/x/sync/semaphore"
)

// BoundLists makes the bounds of lists of subscriptions as small as tests need them.
func (c *Connections) BoundLists(bytes int64, waiting, patience time.Duration) {
	l := c.lists
	l.memory, l.bytes, l.waiting, l.patience, l.pace = semaphore.NewWeighted(bytes), bytes, waiting, patience, patience
}
