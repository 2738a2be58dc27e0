// Package archtest holds no code, only a test: it keeps the borders between the packages, on their transitive dependencies,
// and says of each border why it is there.
package archtest
