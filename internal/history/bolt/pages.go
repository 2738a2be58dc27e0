package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// A page of bbolt begins with its number (8 bytes), its kind (2), how many elements it has (2), and how many pages it goes on for (4), in
// the order of the machine's bytes. Each element of a branch has the place and the length of a key (4 bytes each), and the number of a page below
// it (8).
const (
	branchPage        = 1
	branchElementSize = 16
)

// pageCheck looks at pages.
type pageCheck struct {
	mayGoOn  func() error
	file     io.ReaderAt
	size     int64
	branches map[uint64]struct{} // that were met
	next     []uint64            // to look at
}

// checkPages looks at the pages that the transaction sees, and returns history.ErrCorrupt when a branch is met twice. So none is in a
// circle, in which bbolt would look for a key until the process ends.
func (l *Log) checkPages(ctx context.Context, tx *bbolt.Tx) error {
	c := pageCheck{
		mayGoOn: func() error { return l.calls.MayGoOn(ctx) },
		file:    l.file, size: int64(tx.DB().Info().PageSize), branches: map[uint64]struct{}{},
	}
	for _, name := range []string{entriesBucket, subsBucket, idsBucket, topicsBucket, metaBucket} {
		if b := tx.Bucket([]byte(name)); b != nil && b.Root() != 0 { // a small one is part of the page that names it
			c.next = append(c.next, uint64(b.Root()))
		}
	}
	for n := 0; len(c.next) > 0; n++ {
		if n%256 == 0 {
			if err := c.mayGoOn(); err != nil {
				return err
			}
		}
		last := len(c.next) - 1
		page := c.next[last]
		c.next = c.next[:last]
		if err := c.look(page); err != nil {
			return fmt.Errorf("%w: %s: page %d: %w", history.ErrCorrupt, fileName, page, err)
		}
	}
	return nil
}

// look notes what is below the page.
func (c *pageCheck) look(page uint64) error {
	var b [pageHeaderSize]byte
	at := int64(page) * c.size
	if _, err := c.file.ReadAt(b[:], at); err != nil {
		return err
	}
	if n := binary.NativeEndian.Uint64(b[:]); n != page {
		return fmt.Errorf("it is page %d", n)
	}
	if binary.NativeEndian.Uint16(b[8:]) != branchPage {
		return nil
	}
	if _, met := c.branches[page]; met {
		return errors.New("it is there twice")
	}
	c.branches[page] = struct{}{}
	elements := make([]byte, branchElementSize*int(binary.NativeEndian.Uint16(b[10:])))
	if _, err := c.file.ReadAt(elements, at+pageHeaderSize); err != nil {
		return err
	}
	for ; len(elements) > 0; elements = elements[branchElementSize:] {
		c.next = append(c.next, binary.NativeEndian.Uint64(elements[8:]))
	}
	return nil
}
