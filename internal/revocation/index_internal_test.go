package revocation

import (
	"testing"
	"time"
)

func TestIndex_CountsMarksOnce(t *testing.T) {
	t.Parallel()
	at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	x := &index{}
	add := func(value string, lasts time.Duration) {
		x.add(&Entry{Issuer: "i", Value: value, IssuedBefore: at, Until: at.Add(lasts)}, bySubject)
	}
	want := func(what string, size, held int) {
		t.Helper()
		if x.size() != size || x.held() != held {
			t.Errorf("%s: size = %d, held = %d, want %d, %d", what, x.size(), x.held(), size, held)
		}
	}
	add("a", time.Minute)
	add("b", time.Minute)
	want("two marks", 2, 2)
	add("a", time.Minute)
	want("nothing new", 2, 2)
	add("a", time.Hour)
	want("an extension", 2, 3)
	x.forget(at.Add(2*time.Minute), forgetAtOnce)
	want("the first times are over", 1, 1)
	add("a", 2*time.Hour)
	x.forget(at.Add(3*time.Hour), forgetAtOnce)
	want("all is over", 0, 0)
}
