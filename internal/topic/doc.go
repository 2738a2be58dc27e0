// Package topic holds the rules for topic strings and the matchers that select them.
//
// It owns the character rules of topics, the two matcher types (exact strings and URL Patterns), the test for the
// reserved hub namespace, the proof that one matcher selects no more than another, the index that finds, among
// many matchers, those that select a topic, and what stores need to find, among many topics, those that a matcher selects: the
// normal form of topics ([Normal]) and how those begin that a pattern selects ([Matcher.Prefix]). It does not own how topics and matchers travel (package mercure) nor what
// a token grants (package rar).
//
// # URL Patterns
//
// github.com/dunglas/go-urlpattern decides which patterns are well formed and yields the canonical pattern string of
// each of the eight components. This package compiles its own matcher from those strings, because the library parses
// the topic again for every pattern it is tested against. Components that are literal are compared as strings, the
// usual shapes (a wildcard tail, named groups that stand for whole segments) are matched by hand, and RE2 is used for
// the rest, so that evaluation is linear in the topic. The library is the oracle of the tests.
//
// Every call of the library goes through one function that recovers from its panics and drops its error texts, which
// quote the input.
//
// # Invariants
//
//   - An absolute pattern is compiled without a base; a relative one against the hub URL.
//   - A topic is parsed at most once, by the parser that go-urlpattern itself uses; one in normal form is only cut into
//     the components that the parser would find.
//   - The matcher "*" selects every topic, whatever its type and whether or not the topic is a URL.
//   - A pattern that could not be matched exactly as the library would is refused: one with characters that topics may
//     not hold, with a regular expression that is not one by itself, or with very large ones.
//   - Parsing a topic and evaluating a pattern are bounded. Beyond the bounds a pattern does not match and a topic counts
//     as reserved.
//   - [Contains] answers true only for what it has proved; running out of budget is false.
//
// # Concurrency
//
// [Compiler], [Topic] and [Matcher] are immutable from the outside and safe for concurrent use. An [Index] belongs to
// one goroutine. A [Prover] belongs to one goroutine.
//
// References: Mercure, "Topics", "Topic Matchers" and "Reserved Hub Namespace"; the URL Pattern Standard; the URL
// Standard.
package topic
