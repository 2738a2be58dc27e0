package main

import (
	"encoding/binary"
	"encoding/hex"
)

// A mark is what the data of an update begins with: "load." and, in hexadecimal digits, the run, the lane, the number in the
// lane and the time of sending in nanoseconds since the program's start, each with a dot behind it.
type mark struct {
	run, lane, seq uint32
	sent           int64
}

const (
	markStart = "load."
	markBytes = len(markStart) + 8 + 1 + 8 + 1 + 8 + 1 + 16 + 1
)

// append appends the mark and then so many bytes that there are size of them.
func (m mark) append(dst []byte, size int) []byte {
	var raw [20]byte
	binary.BigEndian.PutUint32(raw[0:], m.run)
	binary.BigEndian.PutUint32(raw[4:], m.lane)
	binary.BigEndian.PutUint32(raw[8:], m.seq)
	binary.BigEndian.PutUint64(raw[12:], uint64(m.sent))
	dst = append(dst, markStart...)
	for i, end := 0, 4; end <= 12; i, end = end, end+4 {
		dst = append(hex.AppendEncode(dst, raw[i:end]), '.')
	}
	dst = append(hex.AppendEncode(dst, raw[12:]), '.')
	for range size - markBytes {
		dst = append(dst, 'x')
	}
	return dst
}

// parseMark reads a mark at the beginning of the data of an update.
func parseMark(p []byte) (mark, bool) {
	if len(p) < markBytes || string(p[:len(markStart)]) != markStart {
		return mark{}, false
	}
	p = p[len(markStart):markBytes]
	run, ok1 := digits(p[:8], p[8])
	lane, ok2 := digits(p[9:17], p[17])
	seq, ok3 := digits(p[18:26], p[26])
	sent, ok4 := digits(p[27:43], p[43])
	return mark{run: uint32(run), lane: uint32(lane), seq: uint32(seq), sent: int64(sent)}, ok1 && ok2 && ok3 && ok4
}

// digits reads lower-case hexadecimal digits that have a dot behind them.
func digits(p []byte, after byte) (v uint64, ok bool) {
	for _, c := range p {
		switch {
		case '0' <= c && c <= '9':
			v = v<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return v, after == '.'
}
