package segments

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"sync"
	"time"
)

// disk is a folder in memory that knows what of it is durable: contents as of a file's last sync, names as of the
// folder's. What happens after that may survive a loss of power, in part or in any order, or not.
type disk struct {
	mu     sync.Mutex
	names  map[string]*inode
	synced map[string]*inode // names as of the last sync of the folder
	// before, when set, is called before each operation that changes something, with the lock held.
	before func(op, name string)
}

// inode is a file's contents.
type inode struct {
	data, synced []byte
	uncut        []byte // data without the cuts since the last sync; nil when there were none
}

func newDisk() *disk { return &disk{names: map[string]*inode{}, synced: map[string]*inode{}} }

var _ folder = (*disk)(nil)

func (d *disk) change(op, name string) func() {
	d.mu.Lock()
	if d.before != nil {
		d.before(op, name)
	}
	return d.mu.Unlock
}

func (d *disk) List() ([]fs.DirEntry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []fs.DirEntry
	for name := range d.names {
		list = append(list, dirEntry(name))
	}
	return list, nil
}

func (d *disk) Open(name string) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, ok := d.names[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return &diskFile{disk: d, inode: i, name: name}, nil
}

func (d *disk) Create(name string) (file, error) {
	defer d.change("create", name)()
	if _, ok := d.names[name]; ok {
		return nil, fs.ErrExist
	}
	d.names[name] = &inode{}
	return &diskFile{disk: d, inode: d.names[name], name: name}, nil
}

func (d *disk) Exists(name string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.names[name]
	return ok, nil
}

func (d *disk) Rename(from, to string) error {
	defer d.change("rename", from)()
	i, ok := d.names[from]
	if !ok {
		return fs.ErrNotExist
	}
	delete(d.names, from)
	d.names[to] = i
	return nil
}

func (d *disk) Remove(name string) error {
	defer d.change("remove", name)()
	if _, ok := d.names[name]; !ok {
		return fs.ErrNotExist
	}
	delete(d.names, name)
	return nil
}

func (d *disk) Sync() error {
	defer d.change("sync folder", "")()
	d.synced = maps.Clone(d.names)
	return nil
}

func (d *disk) Close() error { return nil }

// loss says what of the things that were not synced a loss of power leaves.
type loss struct {
	name  string
	names bool                             // changes of names
	uncut bool                             // not that a file was cut, where it was
	data  func(synced, data []byte) []byte // of a file's contents
}

func losses() []loss {
	lost := func(synced, _ []byte) []byte { return synced }
	kept := func(_, data []byte) []byte { return data }
	half := func(synced, data []byte) []byte {
		if len(data) <= len(synced) {
			return data
		}
		return data[:len(synced)+(len(data)-len(synced))/2]
	}
	// The size has been stored, and what was written has not, as file systems do that store them apart.
	zeros := func(synced, data []byte) []byte {
		if len(data) <= len(synced) {
			return data
		}
		return append(bytes.Clone(synced), make([]byte, len(data)-len(synced))...)
	}
	// The end has been stored before the beginning.
	hole := func(synced, data []byte) []byte {
		out := bytes.Clone(data)
		if len(data) > len(synced) {
			clear(out[len(synced) : len(synced)+(len(data)-len(synced))/2])
		}
		return out
	}
	var list []loss
	for name, data := range map[string]func(_, _ []byte) []byte{"lost": lost, "kept": kept, "half": half, "zeros": zeros, "hole": hole} {
		for _, names := range []bool{false, true} {
			list = append(list, loss{name: fmt.Sprintf("data %s, names kept %v", name, names), names: names, data: data})
		}
	}
	return append(list, loss{name: "data kept, cuts lost", names: true, uncut: true, data: kept})
}

// after returns the disk as a loss of power at this moment leaves it. The caller holds the lock.
func (d *disk) after(l loss) *disk {
	names := d.synced
	if l.names {
		names = d.names
	}
	left := newDisk()
	for name, i := range names {
		data := i.data
		if l.uncut && i.uncut != nil {
			data = i.uncut
		}
		data = bytes.Clone(l.data(i.synced, data))
		left.names[name] = &inode{data: data, synced: data}
	}
	left.synced = maps.Clone(left.names)
	return left
}

// killed returns the disk as the end of the process leaves it at this moment: all is there, and no more of it is
// durable. The caller holds the lock.
func (d *disk) killed() *disk {
	left := newDisk()
	copies := map[*inode]*inode{}
	for _, names := range []map[string]*inode{d.names, d.synced} {
		for _, i := range names {
			if copies[i] == nil {
				copies[i] = &inode{data: bytes.Clone(i.data), synced: bytes.Clone(i.synced), uncut: bytes.Clone(i.uncut)}
			}
		}
	}
	for name, i := range d.names {
		left.names[name] = copies[i]
	}
	for name, i := range d.synced {
		left.synced[name] = copies[i]
	}
	return left
}

// diskFile is an open file of a disk.
type diskFile struct {
	disk  *disk
	inode *inode
	name  string
}

func (f *diskFile) ReadAt(p []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return bytes.NewReader(f.inode.data).ReadAt(p, off)
}

func (f *diskFile) WriteAt(p []byte, off int64) (int, error) {
	defer f.disk.change("write", f.name)()
	f.inode.data = written(f.inode.data, p, int(off))
	if f.inode.uncut != nil {
		f.inode.uncut = written(f.inode.uncut, p, int(off))
	}
	return len(p), nil
}

// written returns a copy of data, which the synced contents may be too, with p at the offset.
func written(data, p []byte, off int) []byte {
	data = append(bytes.Clone(data), make([]byte, max(0, off+len(p)-len(data)))...)
	copy(data[off:], p)
	return data
}

func (f *diskFile) Truncate(size int64) error {
	defer f.disk.change("truncate", f.name)()
	if f.inode.uncut == nil && int(size) < len(f.inode.data) {
		f.inode.uncut = f.inode.data
	}
	f.inode.data = append(bytes.Clone(f.inode.data), make([]byte, max(0, int(size)-len(f.inode.data)))...)[:size]
	return nil
}

func (f *diskFile) Sync() error {
	defer f.disk.change("sync", f.name)()
	f.inode.synced, f.inode.uncut = f.inode.data, nil
	return nil
}

func (f *diskFile) Size() (int64, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return int64(len(f.inode.data)), nil
}

func (f *diskFile) Map(size int) ([]byte, func() error, error) {
	b := make([]byte, size)
	_, err := f.ReadAt(b, 0)
	return b, func() error { clear(b); return nil }, err // whoever looks at it afterwards shall notice
}

func (f *diskFile) Close() error { return nil }

// dirEntry is the name of a plain file that only its owner has rights on.
type dirEntry string

func (e dirEntry) Name() string               { return string(e) }
func (e dirEntry) IsDir() bool                { return false }
func (e dirEntry) Type() fs.FileMode          { return 0 }
func (e dirEntry) Info() (fs.FileInfo, error) { return fileInfo{e}, nil }

type fileInfo struct{ dirEntry }

func (fileInfo) Size() int64        { return 0 }
func (fileInfo) Mode() fs.FileMode  { return 0o600 }
func (fileInfo) ModTime() time.Time { return time.Time{} }
func (fileInfo) Sys() any           { return nil }

var _ io.ReaderAt = (*diskFile)(nil)
