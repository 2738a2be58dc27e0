//go:build !linux

package main

import "syscall"

// narrow leaves a connection as it is: how much it takes in without being read is for the system to say.
func narrow(_, _ string, _ syscall.RawConn) error { return nil }
