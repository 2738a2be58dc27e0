package local

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/presence"
)

func testSubscriber() *presence.Subscriber {
	return &presence.Subscriber{ID: "urn:test:\x00\xff", Subscriptions: []presence.Subscription{
		{MatchType: "Exact", Match: "never UTF-8: \xc3\xff\xfe"},
		{MatchType: "URLPattern", Payload: json.RawMessage(`{ "a" : 1 }`)},
		{Payload: json.RawMessage{}},
	}}
}

func TestRecord(t *testing.T) {
	want := testSubscriber()
	prefix := []byte("what comes before")
	record := appendRecord(bytes.Clone(prefix), 7, want)[len(prefix):]
	got, err := decodeRecord(7, record)
	if diff := cmp.Diff(*want, got); diff != "" || err != nil {
		t.Errorf("decodeRecord() = %v (-want +got):\n%s", err, diff)
	}
	clear(record) // the pages of the database are gone when a transaction ends
	if diff := cmp.Diff(*want, got); diff != "" {
		t.Errorf("a subscriber changed with its record (-want +got):\n%s", diff)
	}
}

// seal gives a record the checksum of what it holds.
func seal(key uint64, record []byte) []byte {
	record = bytes.Clone(record)
	if len(record) >= headerSize {
		binary.BigEndian.PutUint32(record[1:], checksum(key, record))
	}
	return record
}

func TestOpen_newerRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".presence.db")
	for _, version := range []byte{2, 255} {
		d, err := Open(Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		record := appendRecord(nil, d.next, testSubscriber())
		record[0] = version
		err = d.update(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(bucketName)).Put(appendKey(nil, d.next), seal(d.next, record))
		})
		if err := errors.Join(err, d.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Options{Path: path}); !errors.Is(err, ErrNewerFormat) {
			t.Errorf("Open() = %v, want ErrNewerFormat", err)
		}
		db, err := bbolt.Open(path, 0o600, nil) // it was not moved
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucketName)).Delete(appendKey(nil, 1)) })
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzDecodeRecord checks that a record that is none is an error, and that one which is read is written the same.
func FuzzDecodeRecord(f *testing.F) {
	f.Add(appendRecord(nil, 1, testSubscriber()))
	f.Add(appendRecord(nil, 1, &presence.Subscriber{}))
	f.Add([]byte{})
	f.Add([]byte{formatVersion, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Add([]byte{formatVersion, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, record := range [][]byte{b, seal(1, b)} {
			s, err := decodeRecord(1, record)
			if err != nil {
				continue
			}
			again, err := decodeRecord(1, appendRecord(nil, 1, &s))
			if diff := cmp.Diff(s, again); diff != "" || err != nil {
				t.Errorf("decodeRecord() = %v (-first +second):\n%s", err, diff)
			}
		}
	})
}
