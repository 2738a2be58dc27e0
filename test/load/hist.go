package main

import (
	"math/bits"
	"sync"
	"time"
)

// histogram counts times. Every power of two of nanoseconds has 64 buckets, so what it answers is at most 1.6 % too low.
type histogram struct {
	n       uint64
	longest time.Duration
	buckets [64 * 64]uint64
}

func bucket(v uint64) int {
	if v < 64 {
		return int(v)
	}
	e := bits.Len64(v) - 7
	return (e+1)*64 + int(v>>e) - 64
}

// lowest is the smallest value of a bucket.
func lowest(bucket int) time.Duration {
	if bucket < 64 {
		return time.Duration(bucket)
	}
	return time.Duration(bucket%64+64) << (bucket/64 - 1)
}

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.n++
	h.longest = max(h.longest, d)
	h.buckets[bucket(uint64(d))]++
}

func (h *histogram) merge(o *histogram) {
	h.n += o.n
	h.longest = max(h.longest, o.longest)
	for i, c := range o.buckets {
		h.buckets[i] += c
	}
}

// quantile gives the value below which the fraction q of all values lies; 0 when there are none.
func (h *histogram) quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank := min(uint64(q*float64(h.n)), h.n-1)
	var seen uint64
	for i, c := range h.buckets {
		if seen += c; seen > rank {
			return lowest(i)
		}
	}
	return h.longest
}

// latencies is a histogram that many goroutines add to: each to one of its parts.
type latencies struct {
	parts [8]struct {
		mu sync.Mutex
		h  histogram
	}
}

// sum gives what was added, and forgets it.
func (l *latencies) sum() *histogram {
	var out histogram
	for i := range l.parts {
		p := &l.parts[i]
		p.mu.Lock()
		out.merge(&p.h)
		p.h = histogram{}
		p.mu.Unlock()
	}
	return &out
}
