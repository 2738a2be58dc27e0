package mercure

// HubLink returns a Link field (RFC 8288) that names the hub of a resource, and the id of the newest event before the resource was made,
// "earliest" if there was none (ACT-41, ACT-42). More parameters can be appended. hubURL is a URL as URL parsers write it.
func HubLink(hubURL, lastEventID string) string {
	return "<" + hubURL + `>; rel="` + LinkRel + `"; last-event-id="` + quotedPairs(lastEventID) + `"`
}

// quotedPairs escapes s for a quoted string (RFC 9110 section 5.6.4) and leaves out what no field value may hold.
func quotedPairs(s string) string {
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < 0x20 || c == 0x7F:
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
