// Package ownhub holds tests only: they start our own hub in all configurations that matter, run the conformance suite against each
// as anybody would, and make one table of it.
//
// A failure is either fixed or listed in testdata/known-failures.txt with its reason. The list is exact in both directions and has a
// ceiling, so it shrinks with the failures and grows by nobody's mistake. Every check of the suite runs in some configuration.
//
// Without flags, the two configurations that differ most are run. One run of everything, with the table in a file:
//
//	go test -count=1 ./test/conformance/ownhub -all -timeout=1h -table="$PWD/table.txt"
//
// Twenty runs while all cores are kept busy, which must give the same results check by check:
//
//	go test -count=1 -timeout=2h -run TestOurHub ./test/conformance/ownhub -all -runs=20 -busy
//
// A single configuration, or single checks:
//
//	go test -count=1 -run 'TestOurHub/.*/closed' ./test/conformance/ownhub -all -checks='^TOK-'
//
// As many configurations run at a time as -parallel says; the default is one for each core.
package ownhub
