package hub

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// TestDrain_WritesWhatCameBefore hands an entry and the end of all streams to a shard in one step.
func TestDrain_WritesWhatCameBefore(t *testing.T) {
	h := newStill(t)
	k := h.subscribe(t, nil, "a")
	before := k.bytes
	h.dispatcher.dispatch(context.Background(), []history.Entry{
		{Position: 1, Record: history.Record{ID: "id", Topics: []string{"a"}, Event: []byte("id: id\ndata: x\n\n")}},
	})
	h.tellAll(message{kind: drainMessage})
	h.shards[0].step()
	if k.bytes == before {
		t.Error("an entry that came before the end was not written")
	}
	if n := len(h.shards[0].subscribers.m); n != 0 {
		t.Errorf("%d streams are left, want none", n)
	}
}

// TestReasons_areDocumented keeps the page about metrics complete.
func TestReasons_areDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{
		reasonExpired, reasonLifetime, reasonDrained, reasonClosed, reasonStopped, reasonWriteTimeout, reasonHistoryGone,
		reasonHistoryReset, reasonHistoryError,
	} {
		if !strings.Contains(string(page), "\n| `"+reason+"` |") {
			t.Errorf("docs/metrics.md does not explain the reason %s", reason)
		}
	}
}
