// Package suite is the engine of the conformance suite: the matrix of requirements, the checks that stand for them,
// the hub under test, the run, and its results.
//
// It owns how a check speaks to the hub (T, Stream) and how it ends: passed, failed or skipped, always with what was
// observed. It knows no requirement; the checks are in package checks. It imports nothing of the product: it judges hubs
// from outside, ours among them.
//
// No check waits for something not to happen. Whether an update was withheld is asked with a fence: a later update that
// the same stream is known to select. What has not arrived before the fence will not arrive, because a hub dispatches
// in order (SSE-20).
//
// Run starts checks in several goroutines; a T and its Streams belong to one check.
//
// References: the Mercure 1.0 protocol, testdata/requirements.md.
package suite
