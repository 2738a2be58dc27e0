package hub_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

func TestDelivery(t *testing.T) {
	t.Run("SUB-32 SUB-40 delivers what a matcher selects, and nothing else", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			exact := e.stream(nil, "https://e.example/a")
			pattern := e.stream(nil, "~https://e.example/:x")
			all := e.stream(nil, "*")
			e.publish("1", "https://e.example/a")
			e.publish("2", "https://e.example/b")
			e.publish("3", "https://e.example/b/c", "https://e.example/a")
			exact.want(t, "1", "3")
			pattern.want(t, "1", "2", "3")
			all.want(t, "1", "2", "3")
		})
	})
	t.Run("SUB-33 sends an update once that several matchers select", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			k := e.stream(nil, "a", "b", "*", "~https://e.example/:x", "a")
			e.publish("1", "a", "b", "https://e.example/a")
			k.want(t, "1")
		})
	})
	t.Run("SSE-20 keeps the order", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			k := e.stream(nil, "a")
			for _, d := range sequence(1, 50) {
				e.publish(d, "a")
			}
			k.want(t, sequence(1, 50)...)
		})
	})
	t.Run("SSE-05 SSE-06 carries id, type and retry", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			k := e.stream(nil, "a")
			made := e.publish("x", "a")
			e.send(&mercure.Update{Topics: []string{"a"}, ID: "mine", Type: "greeting", Retry: "1500", Data: "y"})
			synctest.Wait()
			got := k.events(t)
			if len(got) != 2 || got[0].ID != made || got[1].ID != "mine" || got[1].Type != "greeting" || got[1].Retry != "1500" {
				t.Errorf("events = %+v, want ids %q and \"mine\"", got, made)
			}
			if !strings.HasPrefix(made, "urn:uuid:") {
				t.Errorf("made id = %q, want a urn:uuid", made)
			}
		})
	})
	t.Run("frames as the sink asks", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			s := e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("a")})
			k := &memSink{sub: s, room: -1, framing: hub.Raw}
			s.Attach(k)
			e.publish("1", "a")
			e.publish("2", "a")
			k.want(t, "1", "2")
		})
	})
	t.Run("keeps what is published between Subscribe and Attach", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			e.publish("0", "a")
			s := e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("a")})
			e.publish("1", "a")
			synctest.Wait()
			k := attach(s, -1)
			e.publish("2", "a")
			k.want(t, "1", "2")
			if got := k.text(t); !strings.HasPrefix(got, "retry: ") {
				t.Errorf("stream starts with %q, want the reconnection time", got)
			}
		})
	})
}

func TestPrivateUpdates(t *testing.T) {
	t.Run("PRIV-01 PRIV-05 PRIV-06 PRIV-13 go to those alone who may read one of the topics", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			anonymous := e.stream(nil, "*")
			canonical := e.stream(e.reader("a"), "*")
			alternate := e.stream(e.reader("b"), "a")
			other := e.stream(e.reader("c"), "*")
			twin := e.stream(e.reader("b", "c"), "a", "b")
			e.secret("1", "a", "b")
			e.publish("2", "a", "b")
			e.secret("3", "c")
			anonymous.want(t, "2")
			canonical.want(t, "1", "2")
			alternate.want(t, "1", "2")
			other.want(t, "2", "3")
			twin.want(t, "1", "2")
		})
	})
	t.Run("PRIV-07 routing does not widen reading", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			k := e.stream(e.reader("https://e.example/books/1"), "~https://e.example/books/:id")
			e.secret("1", "https://e.example/books/1")
			e.secret("2", "https://e.example/books/2")
			k.want(t, "1")
		})
	})
	t.Run("PRIV-08 a publish grant does not allow reading", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			k := e.stream(e.principal(grant("*", topic.Exact, rar.Publish)), "*")
			e.secret("1", "a")
			k.want(t)
		})
	})
	t.Run("PRIV-12 reading does not route", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			k := e.stream(e.reader("*"), "a")
			e.secret("1", "b")
			e.secret("2", "a")
			k.want(t, "2")
		})
	})
	t.Run("finds the one reader among many who listen, and the reverse", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			var listeners, readers []*memSink
			for _, name := range sequence(1, 20) {
				listeners = append(listeners, e.stream(e.reader("u"+name), "*"))
				readers = append(readers, e.stream(e.reader("*"), "v"+name))
			}
			e.secret("1", "u7")
			e.secret("2", "v9")
			for i, k := range listeners {
				if i == 6 {
					k.want(t, "1")
				} else {
					k.want(t)
				}
			}
			for i, k := range readers {
				if i == 8 {
					k.want(t, "2")
				} else {
					k.want(t)
				}
			}
		})
	})
}
