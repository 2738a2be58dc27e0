package bolt

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

const (
	formatVersion = 1

	recordVersion = 1
	fixedSize     = 20 // fields before the id
	maxTopics     = 1<<16 - 1

	// maxRecordBytes bounds the encoded size of a record.
	maxRecordBytes = 16 << 20

	// normalBit in the length of a topic says that it is indexed among those in normal form. It is kept with the record, so that its
	// index keys are found again whatever a later version takes for normal.
	normalBit = 1 << 31
)

// Flags of a record.
const (
	flagPrivate      byte = 1
	flagSubscription byte = 2
)

// recordError says why bytes are no record.
type recordError string

func (e recordError) Error() string { return string(e) }

// castagnoli returns the table of CRC-32C; the library keeps a single one.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// positionKey is the key of a record.
func positionKey(p history.Position) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 0, 8), uint64(p))
}

// keyPosition returns the position that a key of one of the buckets ends with; 0 when it is too short to.
func keyPosition(key []byte) history.Position {
	if len(key) < 8 {
		return 0
	}
	return history.Position(binary.BigEndian.Uint64(key[len(key)-8:]))
}

// encodedSize returns the size of the record in the file.
func encodedSize(r *history.Record) int {
	n := fixedSize + len(r.ID) + len(r.Event)
	for _, t := range r.Topics {
		n += 4 + len(t)
	}
	return n
}

// checkRecord returns an error for a record that the format cannot hold.
func checkRecord(r *history.Record, size int) error {
	switch {
	case r.ID == "" || len(r.Topics) == 0:
		return errors.New("record without id or topic")
	case size > maxRecordBytes || len(r.Topics) > maxTopics:
		return history.ErrTooLarge
	}
	return nil
}

// checkRecords returns an error for an append that cannot be stored.
func checkRecords(records []*history.Record) error {
	if len(records) == 0 {
		return errors.New("no records")
	}
	for _, r := range records {
		if err := checkRecord(r, encodedSize(r)); err != nil {
			return err
		}
	}
	if len(records) > 1 && sizeOf(records) > history.MaxAppendBytes {
		return history.ErrTooLarge
	}
	return nil
}

// appendRecord appends the record's bytes.
func appendRecord(dst []byte, p history.Position, millis int64, r *history.Record, normal func(string) bool) []byte {
	start := len(dst)
	flags := byte(0)
	if r.Private {
		flags |= flagPrivate
	}
	if r.Subscription {
		flags |= flagSubscription
	}
	dst = append(dst, recordVersion, flags)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(r.Topics)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(r.ID)))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(millis))
	dst = binary.LittleEndian.AppendUint32(dst, 0) // checksum
	dst = append(dst, r.ID...)
	for _, t := range r.Topics {
		n := uint32(len(t))
		if normal(t) {
			n |= normalBit
		}
		dst = binary.LittleEndian.AppendUint32(dst, n)
		dst = append(dst, t...)
	}
	dst = append(dst, r.Event...)
	binary.LittleEndian.PutUint32(dst[start+16:], recordSum(p, dst[start:]))
	return dst
}

// recordSum is the checksum of a record at its position.
func recordSum(p history.Position, b []byte) uint32 {
	sum := crc32.Update(0, castagnoli(), positionKey(p))
	sum = crc32.Update(sum, castagnoli(), b[:16])
	return crc32.Update(sum, castagnoli(), b[fixedSize:])
}

// view is a record in the file. It is valid as long as the transaction that it was read in.
type view struct {
	position     history.Position
	millis       int64
	private      bool
	subscription bool
	topics       int
	id           []byte
	rest         []byte // topics and event
	size         int
}

// decodeRecord checks the bytes of the record at p. The error is a recordError, or history.ErrNewerFormat for a sound record that this
// program does not know.
func decodeRecord(p history.Position, b []byte) (view, error) {
	if len(b) < fixedSize {
		return view{}, recordError("record too short")
	}
	if recordSum(p, b) != binary.LittleEndian.Uint32(b[16:]) {
		return view{}, recordError("wrong checksum")
	}
	if b[0] != recordVersion || b[1]&^(flagPrivate|flagSubscription) != 0 {
		return view{}, fmt.Errorf("%w: record version %d, flags %#x", history.ErrNewerFormat, b[0], b[1])
	}
	idLen := int64(binary.LittleEndian.Uint32(b[4:]))
	if idLen > int64(len(b)-fixedSize) {
		return view{}, recordError("id beyond the end of its record")
	}
	v := view{
		position: p, millis: int64(binary.LittleEndian.Uint64(b[8:])), private: b[1]&flagPrivate != 0,
		subscription: b[1]&flagSubscription != 0, topics: int(binary.LittleEndian.Uint16(b[2:])), id: b[fixedSize : fixedSize+idLen], rest: b[fixedSize+idLen:], size: len(b),
	}
	return v, v.checkTopics()
}

// checkTopics walks the topics, so that nobody has to check their lengths again.
func (v *view) checkTopics() error {
	b := v.rest
	for range v.topics {
		if len(b) < 4 || int64(topicLen(b)) > int64(len(b)-4) {
			return recordError("topic beyond the end of its record")
		}
		b = b[4+topicLen(b):]
	}
	return nil
}

// topicLen is the length of the topic that b starts with.
func topicLen(b []byte) int { return int(binary.LittleEndian.Uint32(b) &^ normalBit) }

// cutTopic cuts the first topic off b, which starts with one.
func cutTopic(b []byte) (topic []byte, normal bool, rest []byte) {
	n := 4 + topicLen(b)
	return b[4:n], binary.LittleEndian.Uint32(b)&normalBit != 0, b[n:]
}

// eachTopic calls fn with the topics.
func (v *view) eachTopic(fn func(topic []byte, normal bool) error) error {
	rest := v.rest
	for range v.topics {
		var t []byte
		var normal bool
		t, normal, rest = cutTopic(rest)
		if err := fn(t, normal); err != nil {
			return err
		}
	}
	return nil
}

// entry copies the record out of the file.
func (v *view) entry() history.Entry {
	e := history.Entry{Position: v.position, Record: history.Record{Private: v.private, Subscription: v.subscription, ID: string(v.id)}}
	e.Topics = make([]string, 0, v.topics)
	rest := v.rest
	for range v.topics {
		var t []byte
		t, _, rest = cutTopic(rest)
		e.Topics = append(e.Topics, string(t))
	}
	e.Event = append([]byte(nil), rest...)
	return e
}

// hashKey keys the hashes of a store, so that nobody can choose ids that collide.
type hashKey [32]byte

// hashSize is how many bytes of a hash are kept: what collides is told apart by the record.
const hashSize = 8

// appendHash appends the hash of what is given.
func (k *hashKey) appendHash(dst []byte, text string) []byte {
	h := sha256.New()
	_, _ = h.Write(k[:]) // a hash never fails
	_, _ = io.WriteString(h, text)
	var sum [sha256.Size]byte
	return append(dst, h.Sum(sum[:0])[:hashSize]...)
}

// idPrefix is what the index keys of an id begin with; the position follows.
func (k *hashKey) idPrefix(id string) []byte {
	return k.appendHash(make([]byte, 0, hashSize+8), id)
}

// idKey is the key of the id of the record at p.
func (k *hashKey) idKey(id string, p history.Position) []byte {
	return binary.BigEndian.AppendUint64(k.idPrefix(id), uint64(p))
}
