package presencetest

import (
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/presence"
)

func (s *suite) testRemove(t *testing.T) {
	t.Run("what was removed is not reaped", func(t *testing.T) {
		f := s.fixture(t)
		all := subscribers(0, 300)
		f.put(all[:100]...)
		f.put(all[100:]...)
		f.remove(all[50:250]...)
		f.reopen()
		f.wantReaped(append(subscribers(0, 50), subscribers(250, 50)...)...)
	})
	t.Run("unknown ones are passed over", func(t *testing.T) {
		f := s.fixture(t)
		f.remove(subscribers(0, 3)...)
		f.put(subscribers(0, 3)...)
		f.remove(subscribers(1, 5)...)
		f.remove(subscribers(1, 5)...)
		f.remove(presence.Subscriber{}, subscriber(90), subscriber(90))
		f.remove()
		f.reopen()
		f.wantReaped(subscriber(0))
	})
	t.Run("those of this process and of a former one at once", func(t *testing.T) {
		f := s.fixture(t)
		f.put(subscribers(0, 10)...)
		f.reopen()
		f.put(subscribers(10, 10)...)
		f.wantReaped(subscribers(0, 10)...)
		f.remove(subscribers(5, 10)...)
		f.reopen()
		f.wantReaped(append(subscribers(0, 5), subscribers(15, 5)...)...)
	})
	t.Run("much coming and going leaves who stayed", func(t *testing.T) {
		f := s.fixture(t)
		var want []presence.Subscriber
		for round := range 30 {
			batch := subscribers(100*round, 100)
			f.put(batch...)
			want = append(want, batch[round], batch[99-round])
			var leaving []presence.Subscriber
			for i, one := range batch {
				if i != round && i != 99-round {
					leaving = append(leaving, one)
				}
			}
			f.remove(leaving...)
		}
		f.reopen()
		f.wantReaped(want...)
	})
	t.Run("an id is compared as a whole", func(t *testing.T) {
		f := s.fixture(t)
		var all []presence.Subscriber
		for _, id := range []string{"a", "a\x00", "a\x00b", "A", "aa", "ä", "a\u0308"} {
			all = append(all, presence.Subscriber{ID: id, Subscriptions: subscriber(0).Subscriptions})
		}
		f.put(all...)
		f.remove(all[0], all[5])
		f.reopen()
		f.wantReaped(append(all[1:5:5], all[6])...)
	})
}
