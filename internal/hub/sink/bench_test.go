package sink_test

import (
	"fmt"
	"testing"
)

func BenchmarkStream(b *testing.B) {
	for _, size := range []int{200, 50_000, 1 << 20} {
		for _, tr := range transports()[:3] {
			b.Run(fmt.Sprintf("bytes=%d/over=%s", size, tr.name), func(b *testing.B) {
				s := newServer(b, tr.encrypted, tr.http2, nil)
				var c *client
				if tr.http2 {
					c = s.connect2()
				} else {
					c = s.connect(tr.proto, "")
				}
				data := filled(1, size)[0]
				b.SetBytes(int64(size))
				for b.Loop() {
					s.publish(data)
					c.want(data)
				}
			})
		}
	}
}
