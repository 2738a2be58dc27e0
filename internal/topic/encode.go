package topic

// PercentEncode encodes every byte of s but those of unreserved characters (RFC 3986 section 2.3), as the simple expansion of a URI template does
// (RFC 6570 section 3.2.2). It does not allocate when there is nothing to encode.
func PercentEncode(s string) string {
	const hex = "0123456789ABCDEF"
	n := 0
	for i := range len(s) {
		if !unreserved(s[i]) {
			n++
		}
	}
	if n == 0 {
		return s
	}
	b := make([]byte, 0, len(s)+2*n)
	for i := range len(s) {
		if c := s[i]; unreserved(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&0xF])
		}
	}
	return string(b)
}
