// Package proof holds tests only: they prove that the conformance suite can be trusted. A hub without fault passes every
// check, each planted fault turns the check red that exists to find it, and every check is turned red by some fault,
// or is listed with the reason why none can.
//
// testdata/faults.txt says which checks each fault turns red: those of its own requirement, and others that no fault of
// theirs does. In every run each fault is planted against its own check, and for each other check the fault of the file that turns the
// fewest red. testdata/unproven.txt lists the checks that no fault turns red.
package proof
