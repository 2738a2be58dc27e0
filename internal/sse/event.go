package sse

import (
	"strconv"
	"strings"
	"time"
)

// Event is one event of a stream.
type Event struct {
	// ID is the event's id. AppendEvent leaves the field out when it is empty; a
	// Decoder sets it to the last id the stream has carried.
	ID string
	// Type is the event type; empty means the default type, "message".
	Type string
	// Retry is the reconnection time in milliseconds, ASCII digits only; empty
	// means none.
	Retry string
	// Data is the payload. Its line ends (LF, CR LF, CR) reach the receiver as LF.
	Data string
}

// AppendEvent appends e in wire form, the closing blank line included, and
// returns the extended slice.
//
// The single-line fields must have been validated by the caller. As a last
// defence what would break the framing never reaches the wire: CR, LF and NUL
// are left out of ID and Type, and a Retry that is not digits is left out
// altogether.
func AppendEvent(dst []byte, e Event) []byte {
	if e.ID != "" {
		dst = appendField(dst, "id: ", e.ID)
	}
	if e.Type != "" {
		dst = appendField(dst, "event: ", e.Type)
	}
	if isDigits(e.Retry) {
		dst = appendField(dst, "retry: ", e.Retry)
	}
	dst = appendLines(dst, "data: ", e.Data)
	return append(dst, '\n')
}

// AppendComment appends text as comment lines followed by a blank line. Receivers
// ignore comments; an empty text gives the shortest keep-alive (SSE-02).
func AppendComment(dst []byte, text string) []byte {
	if text == "" {
		return append(dst, ":\n\n"...)
	}
	return append(appendLines(dst, ": ", text), '\n')
}

// AppendRetry appends a block that sets the receiver's reconnection time to d,
// in whole milliseconds; a negative d counts as 0 (SSE-18).
func AppendRetry(dst []byte, d time.Duration) []byte {
	dst = append(dst, "retry: "...)
	dst = strconv.AppendInt(dst, max(d.Milliseconds(), 0), 10)
	return append(dst, '\n', '\n')
}

// appendLines writes each line of text after the prefix; there is always at least
// one. Lines end with LF, CR LF or CR, and what follows the last end is a line even
// when it is empty. The time is linear in the text, whatever ends prevail.
func appendLines(dst []byte, prefix, text string) []byte {
	for more := true; more; {
		var chunk string
		chunk, text, more = strings.Cut(text, "\n")
		if more {
			chunk = strings.TrimSuffix(chunk, "\r") // CR LF is one end
		}
		for cr := true; cr; {
			var line string
			line, chunk, cr = strings.Cut(chunk, "\r")
			dst = append(dst, prefix...)
			dst = append(dst, line...)
			dst = append(dst, '\n')
		}
	}
	return dst
}

// appendField writes one field whose value must stay on its line.
func appendField(dst []byte, prefix, value string) []byte {
	dst = append(dst, prefix...)
	if !strings.ContainsAny(value, "\r\n\x00") {
		dst = append(dst, value...)
		return append(dst, '\n')
	}
	for i := range len(value) {
		if c := value[i]; c != '\r' && c != '\n' && c != 0 {
			dst = append(dst, c)
		}
	}
	return append(dst, '\n')
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
