package client

// Earliest is the cursor that asks for everything the hub has kept.
const Earliest = "earliest"

// Names of the protocol. They are those of package mercure, which a program that only publishes need not link.
const (
	paramMatch        = "match"
	paramMatchPattern = "match_urlpattern"
	paramLastEventID  = "last_event_id"

	fieldTopic   = "topic"
	fieldData    = "data"
	fieldPrivate = "private"
	fieldID      = "id"
	fieldType    = "type"
	fieldRetry   = "retry"

	headerLastEventID        = "Last-Event-ID"
	headerMercureLastEventID = "Mercure-Last-Event-ID"

	formMediaType        = "application/x-www-form-urlencoded"
	eventStreamMediaType = "text/event-stream"

	relHub  = "mercure"
	relSelf = "self"
)
