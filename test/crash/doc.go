// Package crash holds tests only: they kill the real programs without warning and fill their disks, over and over, while people
// publish and read, and look at what is left.
package crash
