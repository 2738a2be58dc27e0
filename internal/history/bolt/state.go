package bolt

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// state is where the log stands, as the database has it.
type state struct {
	last    history.Position // of the newest entry ever
	millis  int64            // time of the newest entry ever, so that times never decrease
	bytes   int64            // of the entries and their index keys
	updates int64            // entries that are no subscription events
	subs    int64            // subscription events
	gone    history.Position // of the last entry that was removed as the oldest of all; what else is missing are subscription events
	first   history.Position // of the oldest entry; last+1 when there is none
}

const (
	stateSize = 56
	// updatesStateSize is the size of one that was written when there were no subscription events: it ends with the number of updates.
	updatesStateSize = 32
)

func (s *state) encode() []byte {
	b := make([]byte, 0, stateSize)
	for _, n := range []uint64{
		uint64(s.last), uint64(s.millis), uint64(s.bytes), uint64(s.updates), uint64(s.subs), uint64(s.gone), uint64(s.first),
	} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func decodeState(b []byte) (state, error) {
	if len(b) != stateSize && len(b) != updatesStateSize {
		return state{}, fmt.Errorf("%w: %s: wrong state", history.ErrCorrupt, fileName)
	}
	s := state{
		last: history.Position(binary.BigEndian.Uint64(b)), millis: int64(binary.BigEndian.Uint64(b[8:])),
		bytes: int64(binary.BigEndian.Uint64(b[16:])), updates: int64(binary.BigEndian.Uint64(b[24:])),
	}
	if len(b) == updatesStateSize {
		s.first = s.last - history.Position(s.updates) + 1 // none was missing between others
		s.gone = s.first - 1
		return s, nil
	}
	s.subs = int64(binary.BigEndian.Uint64(b[32:]))
	s.gone, s.first = history.Position(binary.BigEndian.Uint64(b[40:])), history.Position(binary.BigEndian.Uint64(b[48:]))
	return s, nil
}

// readState returns where the log stands as the transaction sees it.
func readState(tx *bbolt.Tx) (state, error) {
	return decodeState(tx.Bucket([]byte(metaBucket)).Get([]byte(stateKey)))
}

// save makes it what the database has.
func (s *state) save(tx *bbolt.Tx) error {
	return tx.Bucket([]byte(metaBucket)).Put([]byte(stateKey), s.encode())
}

// count is the number of all entries.
func (s *state) count() int64 { return s.updates + s.subs }

// firstShown returns the position before which nothing is shown. Where no position is missing it keeps the limit by number even
// while what that pushes out is yet to be removed.
func (s *state) firstShown(mostUpdates int) history.Position {
	first := s.gone + 1
	if s.subs == 0 && s.last-s.first+1 == history.Position(s.updates) && mostUpdates > 0 && s.updates > int64(mostUpdates) {
		first = max(first, s.last-history.Position(mostUpdates)+1)
	}
	return first
}

// standing is where the log stands: what the database says, and what is known beside it.
type standing struct {
	state

	oldest   int64            // time of the oldest entry
	subsGone history.Position // subscription events up to it are gone; 0 after opening
}

// shown is what readers of the log may know.
type shown struct {
	first   history.Position
	last    history.Position
	lastID  string // empty when the newest entry ever is not retained
	updates int64
	subs    int64
	bytes   int64
	// subsGone is the position up to which all subscription events are gone of those that came since the log was opened.
	subsGone history.Position
	firstAt  int64
	lastAt   int64
}

// show says what readers may know from now on. The id is that of the newest entry when one has come, and otherwise empty.
func (l *Log) show(n *standing, lastID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.shown
	if lastID != "" {
		s.lastID = lastID
	}
	s.first, s.last = max(s.first, n.firstShown(l.o.MaxEvents)), n.last
	s.updates, s.subs, s.bytes = min(n.updates, int64(n.last+1-s.first)), n.subs, n.bytes
	s.subsGone = n.subsGone
	s.firstAt, s.lastAt = n.oldest, n.millis
	if s.first > s.last {
		s.lastID = ""
	}
}
