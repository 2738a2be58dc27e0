package suite

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrMatrix means that the matrix of requirements cannot be read.
var ErrMatrix = errors.New("suite: unreadable matrix of requirements")

// Level is the strength of a requirement, as the matrix writes it.
type Level string

// The levels. Derived marks what follows from the text in a way that leaves some room.
const (
	Must        Level = "MUST"
	MustNot     Level = "MUST NOT"
	Should      Level = "SHOULD"
	ShouldNot   Level = "SHOULD NOT"
	Recommended Level = "RECOMMENDED"
	May         Level = "MAY"
	Derived     Level = "DERIVED"
)

// Class puts a level into one of four classes: MUST, SHOULD, DERIVED, MAY.
func (l Level) Class() Level {
	switch l {
	case MustNot:
		return Must
	case ShouldNot, Recommended:
		return Should
	default:
		return l
	}
}

// Classes are the classes of levels, the strongest first.
func Classes() []Level { return []Level{Must, Should, Derived, May} }

// Requirement is a row of the matrix.
type Requirement struct {
	ID      string
	Area    string // the part of the id before the hyphen
	Level   Level
	Who     string
	Text    string
	Observe string
}

// Observable says whether the requirement can be seen from outside a hub.
func (r Requirement) Observable() bool { return !strings.HasPrefix(r.Observe, "n/o") }

// Requirements reads the rows of a matrix, in order.
func Requirements(matrix string) ([]Requirement, error) {
	id := regexp.MustCompile(`^([A-Z]+)-[0-9]{2}$`)
	known := map[Level]bool{Must: true, MustNot: true, Should: true, ShouldNot: true, Recommended: true, May: true, Derived: true}
	var rows []Requirement
	seen := map[string]bool{}
	for line := range strings.Lines(matrix) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		m := id.FindStringSubmatch(cells[0])
		if m == nil {
			continue
		}
		if len(cells) != 5 || !known[Level(cells[1])] || seen[cells[0]] {
			return nil, fmt.Errorf("%w: row %s", ErrMatrix, cells[0])
		}
		seen[cells[0]] = true
		rows = append(rows, Requirement{ID: cells[0], Area: m[1], Level: Level(cells[1]), Who: cells[2], Text: cells[3], Observe: cells[4]})
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%w: no rows", ErrMatrix)
	}
	return rows, nil
}
