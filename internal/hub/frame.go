package hub

import (
	"strconv"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// frameCost is what a waiting frame counts for beside its bytes: itself and the references to it.
const frameCost = 64

// crlf ends the lines of chunked framing.
const crlf = "\r\n"

// frame is an entry in wire form. It is made once and shared by every reader that gets the entry (I3); it never
// changes.
type frame struct {
	// pos is the entry's position; 0 for what is not an entry, such as keep-alives.
	pos history.Position
	// chunk is the event framed as a chunk; the event itself lies within, after head bytes.
	chunk []byte
	head  int
}

// newFrame makes the frame of an event.
func newFrame(pos history.Position, event []byte) *frame {
	// 16 hexadecimal digits are more than any length needs.
	chunk, head := appendChunk(make([]byte, 0, len(event)+16+2*len(crlf)), event)
	return &frame{pos: pos, chunk: chunk, head: head}
}

// bytes returns the frame as f wants it. The bytes are shared.
func (fr *frame) bytes(f Framing) []byte {
	if f == Chunked {
		return fr.chunk
	}
	return fr.chunk[fr.head : len(fr.chunk)-len(crlf)]
}

// cost is what the frame counts for while it waits for a reader.
func (fr *frame) cost() int { return len(fr.chunk) + frameCost }

// appendChunk appends event as a chunk (RFC 9112 section 7.1) and tells how many bytes come before the event.
func appendChunk(dst, event []byte) (chunk []byte, head int) {
	start := len(dst)
	dst = strconv.AppendUint(dst, uint64(len(event)), 16)
	dst = append(dst, crlf...)
	head = len(dst) - start
	dst = append(dst, event...)
	return append(dst, crlf...), head
}

// chunkBytes is how many bytes appendChunk appends for an event of n bytes.
func chunkBytes(n int) int {
	digits := 1
	for m := n >> 4; m > 0; m >>= 4 {
		digits++
	}
	return digits + n + 2*len(crlf)
}

// pageFrames makes the frames of entries in two allocations: pages belong to one reader and are dropped as a whole.
func pageFrames(entries []history.Entry) []*frame {
	if len(entries) == 0 {
		return nil
	}
	total := 0
	for i := range entries {
		total += chunkBytes(len(entries[i].Event))
	}
	arena := make([]byte, 0, total)
	frames := make([]frame, len(entries))
	pointers := make([]*frame, len(entries))
	for i := range entries {
		start := len(arena)
		var head int
		arena, head = appendChunk(arena, entries[i].Event)
		frames[i] = frame{pos: entries[i].Position, chunk: arena[start:len(arena):len(arena)], head: head}
		pointers[i] = &frames[i]
	}
	return pointers
}
