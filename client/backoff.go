package client

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// backoffBase is the span of the first wait, doubled with every failure up to maxBackoff.
	backoffBase = time.Second
	maxBackoff  = 30 * time.Second
	// minRetry and maxRetry bound the reconnection time that a stream asks for: any publisher can set it.
	minRetry = 100 * time.Millisecond
	maxRetry = time.Minute
	// maxRetryAfter bounds what a Retry-After can ask for.
	maxRetryAfter = 15 * time.Minute
	// settled is how long a stream must last to count as a success when nothing came on it.
	settled = 3 * time.Second
)

// backoff gives the waits between attempts: what the server asked for, and on top of it a random time within a span that grows with
// every failure, so that the readers of a hub that restarts do not come back all at once.
type backoff struct {
	retry    time.Duration // the reconnection time of the stream; 0: it asked for none
	failures int
}

// suggest takes a reconnection time from the stream.
func (b *backoff) suggest(d time.Duration) { b.retry = max(minRetry, min(d, maxRetry)) }

// succeeded starts anew.
func (b *backoff) succeeded() { b.failures = 0 }

// next gives the wait before the next attempt. after is what the last answer asked for, 0 when it did not.
func (b *backoff) next(after time.Duration) time.Duration {
	span := maxBackoff
	if b.failures < 10 { // beyond, the shift would only exceed the maximum further
		span = min(span, backoffBase<<b.failures)
	}
	b.failures++
	return max(b.retry, min(after, maxRetryAfter)) + rand.N(span) //nolint:gosec // a wait is no secret
}

// retryAfter reads a Retry-After field, which holds seconds or a date (RFC 9110 section 10.2.3); what cannot be read is 0.
func retryAfter(field string, now time.Time) time.Duration {
	field = strings.TrimSpace(field)
	if field != "" && strings.Trim(field, "0123456789") == "" {
		seconds, err := strconv.ParseInt(field, 10, 32)
		if err != nil { // more than anybody waits
			return maxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(field)
	if err != nil {
		return 0
	}
	return max(0, at.Sub(now))
}

// wait waits, or returns early with the reason for which ctx ended.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
