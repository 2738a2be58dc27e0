// Package storetest checks an implementation of store.Store against every promise of the port: records and errors, copies, expiry,
// atomicity under concurrency from several instances, revocation, retention, and durability of what was acknowledged before kill -9.
//
// It does not know any implementation. A test of an implementation is
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(tb testing.TB, location string, now func() time.Time) store.Store { … }, "authz.db")
//	}
//
// The parts about durability and about several processes run the test binary again, with the environment variable
// CINNABAR_STORETEST_CHILD set: Run then opens the database in that location and does as it is told, or writes until it is killed. So it
// has to be called first in its test function, or first in the first subtest.
//
// NoneInClear is for tests of all that stores secrets.
package storetest
