package hub

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkFrame(b *testing.B) {
	for _, size := range []int{20, 300, 20_000} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			event := []byte("id: urn:uuid:00000000-0000-4000-8000-000000000000\ndata: " + strings.Repeat("x", size) + "\n\n")
			b.SetBytes(int64(len(event)))
			b.ReportAllocs()
			for b.Loop() {
				_ = newFrame(1, event)
			}
		})
	}
}
