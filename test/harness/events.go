package harness

import (
	"bufio"
	"io"
	"strings"
)

// Event is an event of a stream as a browser sees it.
type Event struct {
	ID, Type, Data string
}

// ReadEvents reads an event stream by the rules of the WHATWG standard, as far as a hub uses them, until it ends or fn returns
// false. It is written for the tests, so that they do not read with the same code that writes.
func ReadEvents(r io.Reader, fn func(Event) bool) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 16<<20)
	var e Event // ID outlives the event, as the standard says
	var data []string
	for sc.Scan() {
		line := strings.TrimSuffix(sc.Text(), "\r")
		if line == "" {
			if data != nil {
				e.Data = strings.Join(data, "\n")
				if !fn(e) {
					return nil
				}
			}
			e, data = Event{ID: e.ID}, nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			e.ID = value
		case "event":
			e.Type = value
		case "data":
			data = append(data, value)
		}
	}
	return sc.Err()
}
