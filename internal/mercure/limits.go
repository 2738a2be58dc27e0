package mercure

// Limits bound what one request may ask for (LIM-01 to LIM-08). A limit of 0 or
// less is off.
type Limits struct {
	// BodyBytes bounds a request's body. The HTTP edge enforces it while reading.
	BodyBytes int
	// URLBytes bounds a request's target. The HTTP edge enforces it.
	URLBytes int

	// Topics bounds the topics of one update.
	Topics int
	// TopicBytes bounds each topic.
	TopicBytes int
	// IDBytes bounds an event id.
	IDBytes int
	// TypeBytes bounds an event type.
	TypeBytes int
	// RetryBytes bounds the digits of a reconnection time.
	RetryBytes int

	// Matchers bounds the matchers of one subscription request.
	Matchers int
	// PatternBytes bounds each matcher.
	PatternBytes int
}

// DefaultLimits returns the limits of a hub that was configured with none.
func DefaultLimits() Limits {
	return Limits{
		BodyBytes:    1 << 20,
		URLBytes:     16 << 10,
		Topics:       1000,
		TopicBytes:   8 << 10,
		IDBytes:      1 << 10,
		TypeBytes:    1 << 10,
		RetryBytes:   1 << 10,
		Matchers:     256,
		PatternBytes: 4 << 10,
	}
}

// exceeds tells whether n is beyond limit.
func exceeds(n, limit int) bool { return limit > 0 && n > limit }
