package refhub

import (
	"fmt"
	"slices"
)

// Fault is a mistake that can be planted in a hub.
type Fault struct {
	Name  string
	Check string // the check that it must turn red
	Does  string // one sentence
}

// Faults lists all faults. A hub has one at most, by [Options].Fault. It sets in after the second update that the hub
// dispatches.
func Faults() []Fault {
	var faults []Fault
	for _, e := range entries() {
		faults = append(faults, e.Fault)
	}
	return append(faults, slices.Concat(
		subscribeFaults(), streamFaults(), historyFaults(), publishFaults(), presentationFaults(), tokenFaults(),
		detailFaults(), readingFaults(), activeFaults(), corsFaults(), metadataFaults(), limitFaults(),
	)...)
}

// entry is a fault that is a matter of a datum: plant sets it.
type entry struct {
	Fault
	plant func(p *planted)
}

func entries() []entry {
	return slices.Concat(
		octetFaults(), characterFaults(), exactFaults(), patternFaults(), illFormedFaults(), namespaceFaults(),
		retryFaults(), dataFaults(), nameFaults(), equalityFaults(), originFaults(), detailEqualityFaults(), cursorFaults(),
		fieldFaults(), compactFaults(),
	)
}

// planted is the one fault of a hub: its name, and the datum that some have.
type planted struct {
	name       string
	octets     octets
	character  character
	exact      comparison
	audience   equality
	issuer     equality
	origin     equality
	detailType equality
	pattern    patternFault
	namespace  namespaceFault
	retry      retryFault
	data       dataFault
	names      nameFault
	page       equality // the origin of a page that publishes
	typ        equality
	algorithm  equality
	action     equality
	matchType  equality
	cursor     equality
	fields     fieldFault
	compact    compactFault
}

// octets that are no UTF-8 and are accepted in a place.
type octets struct {
	where    place
	accepted string // empty: any
}

// character is a range of characters that is wrongly refused or accepted in a place.
type character struct {
	where     place
	refused   bool
	low, high rune
}

// comparison replaces the exact comparison of a matcher with a topic.
type comparison struct {
	same func(h *Hub, pattern, topic string) bool
}

// equality takes more for equal than is.
type equality struct {
	same func(given, wanted string) bool
}

// patternFault changes how URL patterns are compiled or evaluated.
type patternFault struct {
	illFormed func(pattern string) bool // accepted, though ill-formed
	where     place                     // where illFormed holds; empty: everywhere
	rewrite   func(pattern string) string
	topic     func(h *Hub, topic string) string
	verdict   func(h *Hub, pattern, topic string, matched bool) bool
}

// namespaceFault changes the verdict on a topic whose resolved path is known.
type namespaceFault struct {
	verdict func(h *Hub, topic, path string, reserved bool) bool
}

// retryFault replaces the syntax of retry by a regular expression.
type retryFault struct{ expression string }

// dataFault changes data.
type dataFault struct{ change func(string) string }

// nameFault ignores parameter names that are reserved.
type nameFault struct{ ignored func(name string) bool }

// fieldFault changes the Authorization fields of a request before they are read.
type fieldFault struct {
	change func(fields []string) []string
}

// compactFault changes a token before it is read.
type compactFault struct{ change func(string) string }

// plant finds a fault by its name.
func plant(name string) (planted, error) {
	p := planted{name: name}
	if name == "" {
		return p, nil
	}
	for _, e := range entries() {
		if e.Name == name {
			e.plant(&p)
			return p, nil
		}
	}
	if slices.ContainsFunc(Faults(), func(f Fault) bool { return f.Name == name }) {
		return p, nil
	}
	return p, fmt.Errorf("%w: no fault is called %q", ErrOptions, name)
}

// trial is how many updates a hub dispatches before its fault sets in. A suite that begins with a trial of the hub, as
// ours does with one update, would not come to its checks otherwise.
const trial = 1

// faulty says whether the fault, if any, has set in.
func (h *Hub) faulty() bool { return h.faults.name != "" && h.published.Load() >= trial }

// fault says whether this is the fault of the hub.
func (h *Hub) fault(name string) bool { return h.faults.name == name && h.faulty() }

// faultIf is fault, if a condition holds.
func (h *Hub) faultIf(name string, when bool) bool { return when && h.fault(name) }

// datum gives the datum of the fault, if it has one.
func (h *Hub) datum() *planted {
	if h.faulty() {
		return &h.faults
	}
	return &h.faultless
}
