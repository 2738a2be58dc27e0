package bolt

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// circle makes a store in which the second page below the root of a bucket is the root again, and opens it.
func circle(t *testing.T, bucket string) *Log {
	t.Helper()
	l := testLog(t, Options{})
	n := 0
	err := l.Import(t.Context(), func() (history.Stamped, error) {
		if n++; n > 3000 {
			return history.Stamped{}, io.EOF
		}
		return history.Stamped{Record: *testRecord(strconv.Itoa(n))}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var at int64
	err = l.view(func(tx *bbolt.Tx) error {
		at = int64(tx.Bucket([]byte(bucket)).Root()) * int64(tx.DB().Info().PageSize)
		return nil
	})
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(l.o.Dir, fileName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var page [pageHeaderSize]byte
	if _, err := file.ReadAt(page[:], at); err != nil || binary.NativeEndian.Uint16(page[8:]) != branchPage || binary.NativeEndian.Uint16(page[10:]) < 3 {
		t.Fatalf("ReadAt() = %v, kind and number of elements % x, want a branch with three", err, page[8:12])
	}
	_, err = file.WriteAt(page[:8], at+pageHeaderSize+branchElementSize+8)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), Options{Dir: l.o.Dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	return again
}

// A page that names one above it makes no walk go on for ever.
func TestCircle(t *testing.T) {
	for _, bucket := range []string{entriesBucket, idsBucket, topicsBucket} {
		t.Run(bucket, func(t *testing.T) {
			l := circle(t, bucket)
			_, verifyErr := l.Verify(t.Context())
			_, compactErr := l.Compact(t.Context())
			for what, err := range map[string]error{"Verify": verifyErr, "Compact": compactErr} {
				if !errors.Is(err, history.ErrCorrupt) || !strings.Contains(err.Error(), "it is there twice") {
					t.Errorf("%s() = %v, want ErrCorrupt", what, err)
				}
			}
			to, err := bbolt.Open(filepath.Join(t.TempDir(), "copy"), 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			copyErr := l.view(func(tx *bbolt.Tx) error { return l.copyBuckets(t.Context(), tx, to) })
			if err := to.Close(); err != nil {
				t.Error(err)
			}
			errs := map[string]error{
				"copyBuckets": copyErr,
				"walk": l.view(func(tx *bbolt.Tx) error {
					w := newWalker(tx, bucket)
					err := w.seek(nil)
					for err == nil && w.key != nil {
						err = w.next()
					}
					return err
				}),
			}
			if bucket == entriesBucket {
				_, errs["Replay"] = l.Replay(t.Context(), history.Query{MaxBytes: 1 << 30})
				errs["Export"] = l.Export(t.Context(), func(history.Stamped) error { return nil })
			}
			for what, err := range errs {
				if !errors.Is(err, history.ErrCorrupt) || !strings.Contains(err.Error(), "bucket "+bucket+" are not in order") {
					t.Errorf("%s() = %v, want ErrCorrupt", what, err)
				}
			}
			if err := l.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
		})
	}
}
