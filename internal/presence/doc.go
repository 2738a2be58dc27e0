// Package presence is the port where a node of the hub keeps which subscribers it has, so that the end of their subscriptions is
// reported by somebody else when the node is gone (ACT-03): by its successor on this machine, or by another node.
//
// It holds what is needed for that and nothing else. Which subscriptions are active on this node is known to the engine, and what is
// published about them is in the history. Package presencetest is the contract as a test suite; the packages beside it implement it.
//
// # Order
//
// The engine puts a subscriber before it appends the events of its subscriptions' beginning, and removes it after it has appended those of their end.
// So whoever was announced is reaped if the node dies, and an end can be reported twice but never not at all.
//
// References: Mercure, "Subscription Events"; requirements ACT-02, ACT-03 and ACT-49.
package presence
