package mercure

// Parameters of a subscription.
const (
	// ParamMatch selects topics by exact comparison.
	ParamMatch = "match"
	// ParamMatchPrefix precedes a matcher type's name in a parameter's name, as in
	// match_urlpattern.
	ParamMatchPrefix = "match_"
	// ParamLastEventID carries the cursor where no header can.
	ParamLastEventID = "last_event_id"
)

// Fields of a publication.
const (
	// FieldTopic is an identifier of what the update is about; the first is canonical.
	FieldTopic = "topic"
	// FieldData is the payload.
	FieldData = "data"
	// FieldPrivate marks the update as private by its presence.
	FieldPrivate = "private"
	// FieldID is the event id.
	FieldID = "id"
	// FieldType is the event type.
	FieldType = "type"
	// FieldRetry is the reconnection time in milliseconds.
	FieldRetry = "retry"
)

// HTTP names.
const (
	// HeaderLastEventID is the request header with the cursor.
	HeaderLastEventID = "Last-Event-ID"
	// HeaderMercureLastEventID is the response header that says where the stream starts.
	HeaderMercureLastEventID = "Mercure-Last-Event-ID"
	// LinkRel is the link relation between a resource and its hub.
	LinkRel = "mercure"
	// DefaultCookieName is the recommended name of the cookie that carries the access token.
	DefaultCookieName = "__Secure-mercure_access_token"
	// DefaultHubPath is the recommended path of a hub's URL.
	DefaultHubPath = "/.well-known/mercure"
	// FormMediaType is the media type of publications and of QUERY bodies.
	FormMediaType = "application/x-www-form-urlencoded"
	// EventStreamMediaType is the media type of subscriptions.
	EventStreamMediaType = "text/event-stream"
)

// Reserved values.
const (
	// ReservedEventType is the event type of the hub's own updates (PUB-27).
	ReservedEventType = "mercure"
	// Earliest is the cursor that asks for everything the hub has kept (REC-11).
	Earliest = "earliest"
)
