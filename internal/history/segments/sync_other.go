//go:build !linux

package segments

import "os"

// syncData makes a file's contents and size durable.
func syncData(f *os.File) error { return f.Sync() }
