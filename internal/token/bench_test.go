package token_test

import (
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

func BenchmarkVerify(b *testing.B) {
	for name, size := range map[string]int{"cache=hit": 0, "cache=miss": -1} {
		for _, k := range signingKeys() {
			b.Run(name+"/alg="+k.Algorithm, func(b *testing.B) {
				o := keysOptions(b)
				o.CacheSize = size
				v := newVerifier(b, o)
				compact := must(token.Mint(k, mintClaims()))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := v.Verify(b.Context(), compact, rar.Subscribe); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
