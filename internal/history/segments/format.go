package segments

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

const (
	magic         = "cbrseg\r\n"
	formatVersion = 1
	headerSize    = 64

	recordVersion = 1
	prefixSize    = 8  // length and checksum
	fixedSize     = 32 // prefix and fixed fields
	maxTopics     = 1<<16 - 1

	// maxRecordBytes bounds the encoded size of a record.
	maxRecordBytes = 16 << 20
)

// Flags of a record.
const (
	flagPrivate      byte = 1 << iota
	flagCommit            // first record of a commit
	flagSubscription      // a subscription event
	flagMore              // the next record belongs to the same Append
	knownFlags       = flagPrivate | flagCommit | flagSubscription | flagMore
)

// recordError says why bytes are no record of their segment.
type recordError string

func (e recordError) Error() string { return string(e) }

// errShort says that the bytes end before their record does.
const errShort = recordError("record goes on beyond the end")

// castagnoli returns the table of CRC-32C; the library keeps a single one.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// storeID tells stores apart.
type storeID [16]byte

// header is the head of a segment file.
type header struct {
	base    history.Position
	created time.Time
	store   storeID
	salt    [12]byte
	before  uint32 // subscription events in the segment before, which may have no index
}

// encode returns the header's bytes and their checksum, from which those of the records continue.
func (h *header) encode() ([]byte, uint32) {
	b := make([]byte, 0, headerSize)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint16(b, formatVersion)
	b = binary.LittleEndian.AppendUint16(b, headerSize)
	b = binary.LittleEndian.AppendUint32(b, h.before)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.base))
	b = binary.LittleEndian.AppendUint64(b, uint64(h.created.UnixMilli()))
	b = append(b, h.store[:]...)
	b = append(b, h.salt[:]...)
	sum := crc32.Checksum(b, castagnoli())
	return binary.LittleEndian.AppendUint32(b, sum), sum
}

// decodeHeader reads the first bytes of a segment file, as many as there are up to headerSize.
func decodeHeader(b []byte) (h header, sum uint32, err error) {
	if len(b) < len(magic)+2 || string(b[:len(magic)]) != magic {
		return header{}, 0, fmt.Errorf("%w: no segment", history.ErrForeignFile)
	}
	if v := binary.LittleEndian.Uint16(b[8:]); v > formatVersion {
		return header{}, 0, fmt.Errorf("%w: segment version %d, this program knows %d", history.ErrNewerFormat, v, formatVersion)
	}
	if len(b) < headerSize || binary.LittleEndian.Uint16(b[10:]) != headerSize {
		return header{}, 0, fmt.Errorf("%w: segment header is cut short", history.ErrCorrupt)
	}
	sum = crc32.Checksum(b[:headerSize-4], castagnoli())
	if sum != binary.LittleEndian.Uint32(b[headerSize-4:]) {
		return header{}, 0, fmt.Errorf("%w: segment header has a wrong checksum", history.ErrCorrupt)
	}
	h.before = binary.LittleEndian.Uint32(b[12:])
	h.base = history.Position(binary.LittleEndian.Uint64(b[16:]))
	h.created = time.UnixMilli(int64(binary.LittleEndian.Uint64(b[24:])))
	copy(h.store[:], b[32:])
	copy(h.salt[:], b[48:])
	return h, sum, nil
}

// encodedSize returns the size of r's record.
func encodedSize(r *history.Record) int {
	n := fixedSize + len(r.ID) + len(r.Event)
	for _, t := range r.Topics {
		n += 4 + len(t)
	}
	return n
}

// stamp is what a commit adds to a record.
type stamp struct {
	position history.Position
	millis   int64 // time of the append
	first    bool  // of its commit
	more     bool  // the next record belongs to the same Append
}

// appendRecord appends r's record. seed is the checksum of the segment's header. The
// record must be within the bounds that checkRecord enforces.
func appendRecord(dst []byte, seed uint32, s stamp, r *history.Record) []byte {
	start := len(dst)
	var flags byte
	if r.Private {
		flags |= flagPrivate
	}
	if s.first {
		flags |= flagCommit
	}
	if r.Subscription {
		flags |= flagSubscription
	}
	if s.more {
		flags |= flagMore
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(encodedSize(r)-prefixSize))
	dst = append(dst, 0, 0, 0, 0, recordVersion, flags)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(r.Topics)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(r.ID)))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.position))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.millis))
	dst = append(dst, r.ID...)
	for _, t := range r.Topics {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(t)))
		dst = append(dst, t...)
	}
	dst = append(dst, r.Event...)
	binary.LittleEndian.PutUint32(dst[start+4:], recordSum(seed, dst[start:]))
	return dst
}

// recordSum returns the checksum of the record that b holds exactly.
func recordSum(seed uint32, b []byte) uint32 {
	return crc32.Update(crc32.Update(seed, castagnoli(), b[:4]), castagnoli(), b[prefixSize:])
}

// view is a decoded record. Its slices point into the buffer it was decoded from.
type view struct {
	stamp

	private      bool
	subscription bool
	topics       int
	id           []byte
	rest         []byte // topics and event
	size         int    // of the whole record
}

// kind tells what a record is.
func (v *view) kind() kind {
	switch {
	case !v.subscription:
		return update
	case len(v.id) > 0:
		return event
	}
	return hollow
}

// kind is what a record is.
type kind uint8

const (
	update kind = iota
	event       // a subscription event
	hollow      // what is left of a subscription event that has gone
)

// kindOf tells what a record is that is appended.
func kindOf(r *history.Record) kind {
	if r.Subscription {
		return event
	}
	return update
}

// recordSize returns the size of the record at the start of b by its length field alone, or an
// recordError.
func recordSize(b []byte) (int, error) {
	if len(b) < 4 {
		return 0, errShort
	}
	n := int64(binary.LittleEndian.Uint32(b)) + prefixSize
	if n < fixedSize || n > maxRecordBytes {
		return 0, recordError("impossible length")
	}
	return int(n), nil
}

// decodeRecord decodes and checks the record at the start of b. The error is an recordError,
// errShort when b does not hold all of it, or history.ErrNewerFormat for a sound record that
// this program does not know.
func decodeRecord(b []byte, seed uint32) (view, error) {
	n, err := recordSize(b)
	if err != nil {
		return view{}, err
	}
	if len(b) < n {
		return view{}, errShort
	}
	b = b[:n]
	if recordSum(seed, b) != binary.LittleEndian.Uint32(b[4:]) {
		return view{}, recordError("wrong checksum")
	}
	if b[8] != recordVersion {
		return view{}, fmt.Errorf("%w: record version %d, this program knows %d", history.ErrNewerFormat, b[8], recordVersion)
	}
	if b[9]&^knownFlags != 0 {
		return view{}, fmt.Errorf("%w: record flags %#x", history.ErrNewerFormat, b[9])
	}
	idLen := int64(binary.LittleEndian.Uint32(b[12:]))
	if idLen > int64(n-fixedSize) {
		return view{}, recordError("id beyond the end of its record")
	}
	v := view{
		stamp: stamp{
			position: history.Position(binary.LittleEndian.Uint64(b[16:])),
			millis:   int64(binary.LittleEndian.Uint64(b[24:])),
			first:    b[9]&flagCommit != 0,
			more:     b[9]&flagMore != 0,
		},
		private:      b[9]&flagPrivate != 0,
		subscription: b[9]&flagSubscription != 0,
		topics:       int(binary.LittleEndian.Uint16(b[10:])),
		id:           b[fixedSize : fixedSize+idLen : n], // the capacity takes in the rest
		rest:         b[fixedSize+idLen:],
		size:         n,
	}
	return v, v.checkTopics()
}

// checkTopics walks the topics, so that nobody has to check their lengths again.
func (v *view) checkTopics() error {
	b := v.rest
	for range v.topics {
		if len(b) < 4 || int64(binary.LittleEndian.Uint32(b)) > int64(len(b)-4) {
			return recordError("topic beyond the end of its record")
		}
		b = b[4+binary.LittleEndian.Uint32(b):]
	}
	return nil
}

// cutTopic cuts the first topic off b, which starts with one.
func cutTopic(b []byte) (topic, rest []byte) {
	n := 4 + int(binary.LittleEndian.Uint32(b))
	return b[4:n], b[n:]
}

// entry copies the record out of its buffer. Id and topics share their memory.
func (v *view) entry() history.Entry {
	texts := len(v.id)
	rest := v.rest
	for range v.topics {
		_, rest = cutTopic(rest)
	}
	texts += len(v.rest) - len(rest)
	e := history.Entry{Position: v.position, Record: history.Record{Private: v.private, Subscription: v.subscription}}
	all := string(v.id[:texts:texts]) // the topics lie behind the id
	e.ID, all = all[:len(v.id)], all[len(v.id):]
	e.Topics = make([]string, v.topics)
	for i := range e.Topics {
		n := 4 + int(binary.LittleEndian.Uint32(v.rest[len(v.rest)-len(rest)-len(all):]))
		e.Topics[i], all = all[4:n], all[n:]
	}
	e.Event = append([]byte(nil), rest...)
	return e
}
