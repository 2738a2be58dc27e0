package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/cinnabar-hub/cinnabar/internal/presence"
)

// A record is
//
//	version   1 byte
//	checksum  4 bytes, CRC-32C of the key, the version and what follows
//	id        text
//	count     uvarint, of subscriptions; for each
//	  type    text
//	  match   text
//	  payload uvarint: 0 for none, otherwise its length and 1; and the payload
//
// and a text is its length, an uvarint, and its bytes. Whatever a later version changes, it keeps the first two: so an older program can
// tell that from damage.
const (
	formatVersion = 1
	headerSize    = 1 + crc32.Size
	// minSubscription is the least a subscription takes: three lengths.
	minSubscription = 3
)

var (
	errChecksum = errors.New("wrong checksum")
	errContent  = errors.New("wrong content")
)

// appendRecord appends the record of a subscriber that has a key.
func appendRecord(b []byte, key uint64, s *presence.Subscriber) []byte {
	start := len(b)
	b = append(b, formatVersion, 0, 0, 0, 0)
	b = appendText(b, s.ID)
	b = binary.AppendUvarint(b, uint64(len(s.Subscriptions)))
	for i := range s.Subscriptions {
		sub := &s.Subscriptions[i]
		b = appendText(b, sub.MatchType)
		b = appendText(b, sub.Match)
		if sub.Payload == nil {
			b = binary.AppendUvarint(b, 0)
			continue
		}
		b = binary.AppendUvarint(b, uint64(len(sub.Payload))+1)
		b = append(b, sub.Payload...)
	}
	record := b[start:]
	binary.BigEndian.PutUint32(record[1:], checksum(key, record))
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func checksum(key uint64, record []byte) uint32 {
	var head [9]byte
	binary.BigEndian.PutUint64(head[:], key)
	head[8] = record[0]
	castagnoli := crc32.MakeTable(crc32.Castagnoli) // made once by that package
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, record[headerSize:])
}

// decodeRecord gives the subscriber of a record, which it copies. Errors: ErrNewerFormat, and that the record is damaged.
func decodeRecord(key uint64, record []byte) (presence.Subscriber, error) {
	if len(record) < headerSize || binary.BigEndian.Uint32(record[1:]) != checksum(key, record) {
		return presence.Subscriber{}, errChecksum
	}
	if v := record[0]; v > formatVersion {
		return presence.Subscriber{}, fmt.Errorf("%w: version %d, this program knows %d", ErrNewerFormat, v, formatVersion)
	}
	r := reader{rest: string(record[headerSize:])}
	s := presence.Subscriber{ID: strings.Clone(r.text())} // cloned: it is kept longer than the rest
	count := r.uvarint()
	if count > uint64(len(r.rest)/minSubscription) {
		return presence.Subscriber{}, errContent
	}
	s.Subscriptions = make([]presence.Subscription, count)
	for i := range s.Subscriptions {
		sub := &s.Subscriptions[i]
		sub.MatchType, sub.Match = r.text(), r.text()
		sub.Payload = r.payload()
	}
	if r.bad || r.rest != "" {
		return presence.Subscriber{}, errContent
	}
	return s, nil
}

// reader takes a record apart. It gives zero values once something was wrong.
type reader struct {
	rest string
	bad  bool
}

func (r *reader) uvarint() uint64 {
	var v uint64
	for shift := 0; shift < 64 && len(r.rest) > 0; shift += 7 {
		b := r.rest[0]
		r.rest = r.rest[1:]
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	r.bad, r.rest = true, ""
	return 0
}

func (r *reader) take(n uint64) string {
	if n > uint64(len(r.rest)) {
		r.bad, r.rest = true, ""
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

func (r *reader) text() string { return r.take(r.uvarint()) }

func (r *reader) payload() []byte {
	n := r.uvarint()
	if n == 0 {
		return nil
	}
	return append([]byte{}, r.take(n-1)...)
}
