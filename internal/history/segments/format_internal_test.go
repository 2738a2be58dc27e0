package segments

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// The bytes of format version 1, as doc.go describes them. They must never change: a new layout
// is a new version.
const (
	goldenHeader = "6362727365670d0a" + "0100" + "4000" + "00000000" + "0700000000000000" + "15cd5b0700000000" +
		"000102030405060708090a0b0c0d0e0f" + "a0a1a2a3a4a5a6a7a8a9aaab" + "495208e7"
	goldenRecord = "2e000000" + "fa630a72" + "01" + "03" + "0200" + "02000000" + "0900000000000000" + "e703000000000000" +
		"6964" + "01000000" + "61" + "02000000" + "c3a9" + "646174613a20780a0a"
)

// goldenHollow is a hollow record, in the middle of several that were appended together.
const goldenHollow = "18000000" + "38f0fc97" + "01" + "0c" + "0000" + "00000000" + "0900000000000000" + "e703000000000000"

func goldenValues() (header, stamp, history.Record) {
	h := header{base: 7, created: time.UnixMilli(123456789)}
	for i := range h.store {
		h.store[i] = byte(i)
	}
	for i := range h.salt {
		h.salt[i] = byte(0xa0 + i)
	}
	return h, stamp{position: 9, millis: 999, first: true},
		history.Record{ID: "id", Topics: []string{"a", "é"}, Private: true, Event: []byte("data: x\n\n")}
}

func TestFormat_isFrozen(t *testing.T) {
	h, s, r := goldenValues()
	head, seed := h.encode()
	if got := hex.EncodeToString(head); got != goldenHeader {
		t.Errorf("header is\n%s, want\n%s", got, goldenHeader)
	}
	if got := hex.EncodeToString(appendRecord(nil, seed, s, &r)); got != goldenRecord {
		t.Errorf("record is\n%s, want\n%s", got, goldenRecord)
	}
	s.first, s.more = false, true
	if got := hex.EncodeToString(appendRecord(nil, seed, s, &history.Record{Subscription: true})); got != goldenHollow {
		t.Errorf("hollow record is\n%s, want\n%s", got, goldenHollow)
	}
	h.before = 0x01020304
	head, seed = h.encode()
	if got := hex.EncodeToString(head[12:16]); got != "04030201" {
		t.Errorf("the number of subscription events before is %s", got)
	}
	gotHeader, gotSeed, err := decodeHeader(head)
	if err != nil || gotHeader != h || gotSeed != seed {
		t.Errorf("decodeHeader() = %+v, %#x, %v, want %+v, %#x", gotHeader, gotSeed, err, h, seed)
	}
}

func TestDecodeHeader_refuses(t *testing.T) {
	h, _, _ := goldenValues()
	good, _ := h.encode()
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0xff
		want := history.ErrCorrupt
		switch {
		case i < 8:
			want = history.ErrForeignFile
		case i < 10:
			want = history.ErrNewerFormat
		}
		if _, _, err := decodeHeader(bad); !errors.Is(err, want) {
			t.Errorf("decodeHeader(byte %d changed) = %v, want %v", i, err, want)
		}
	}
	for n := range good {
		if _, _, err := decodeHeader(good[:n]); err == nil {
			t.Errorf("decodeHeader(%d bytes) succeeds", n)
		}
	}
}

func TestDecodeRecord_refusesEveryChange(t *testing.T) {
	_, s, r := goldenValues()
	good := appendRecord(nil, 1, s, &r)
	for bit := range len(good) * 8 {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		if v, err := decodeRecord(bad, 1); err == nil {
			t.Errorf("decodeRecord(bit %d changed) = %+v", bit, v)
		}
	}
	for n := range good {
		if _, err := decodeRecord(good[:n], 1); !errors.Is(err, errShort) {
			t.Errorf("decodeRecord(%d bytes) = %v, want errShort", n, err)
		}
	}
	if _, err := decodeRecord(good, 2); err == nil {
		t.Error("decodeRecord() accepts a record of another segment")
	}
}

func TestDecodeRecord_newerVersions(t *testing.T) {
	_, s, r := goldenValues()
	for name, i := range map[string]int{"version": 8, "flags": 9} {
		b := appendRecord(nil, 1, s, &r)
		b[i] = 0x81
		sum := recordSum(1, b)
		b[4], b[5], b[6], b[7] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
		if _, err := decodeRecord(b, 1); !errors.Is(err, history.ErrNewerFormat) {
			t.Errorf("decodeRecord(newer %s) = %v, want ErrNewerFormat", name, err)
		}
	}
}

// FuzzRecord checks that what is encoded is decoded, and that whatever decodes is the encoding of
// what it decodes to.
func FuzzRecord(f *testing.F) {
	_, s, r := goldenValues()
	f.Add(appendRecord(nil, 0, s, &r), "id", "topic", "", []byte("data: x\n\n"), true)
	f.Add([]byte{0x18, 0, 0, 0}, "", "", "a", []byte{}, false)
	f.Add(appendRecord(nil, 0, s, &history.Record{Subscription: true}), "id", "a", "", []byte{}, true)
	f.Fuzz(func(t *testing.T, raw []byte, id, topic, alternate string, event []byte, private bool) {
		in := history.Record{ID: id, Topics: []string{topic, alternate}, Private: private, Subscription: len(id)%2 == 0, Event: event}
		b := appendRecord([]byte("x"), 5, stamp{position: 3, millis: -1, more: len(topic)%2 == 0}, &in)[1:]
		v, err := decodeRecord(append(bytes.Clone(b), raw...), 5)
		if err != nil || v.size != len(b) || v.size != encodedSize(&in) {
			t.Fatalf("decodeRecord(appendRecord(%+v)) = %+v, %v", in, v, err)
		}
		want := history.Entry{Position: 3, Record: in}
		if d := cmp.Diff(want, v.entry(), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("entry (-want +got):\n%s", d)
		}
		// Raw bytes get the right checksum, so that the fuzzer reaches what lies behind it.
		if len(raw) >= fixedSize {
			raw = bytes.Clone(raw)
			n := min(len(raw), maxRecordBytes)
			raw[0], raw[1], raw[2], raw[3] = byte(n-prefixSize), byte((n-prefixSize)>>8), byte((n-prefixSize)>>16), 0
			sum := recordSum(5, raw[:n])
			raw[4], raw[5], raw[6], raw[7] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
		}
		v, err = decodeRecord(raw, 5)
		if err != nil {
			return
		}
		e := v.entry()
		if again := appendRecord(nil, 5, v.stamp, &e.Record); !bytes.Equal(again, raw[:v.size]) {
			t.Errorf("decodeRecord(%x) encodes as %x", raw[:v.size], again)
		}
	})
}
