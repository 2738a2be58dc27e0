package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// stalledArgs has two publishers send 40 updates to three subscribers, without and with two that stall. What is owed to one
// of those is more than its connection takes in, at least on Linux.
func stalledArgs(t *testing.T, url string, more ...string) []string {
	t.Helper()
	return append([]string{
		"-hub", url, "-key", secretFile(t), "-issuer", "https://issuer.example", "-n", "3", "-c", "2", "-events", "40", "-size", "20000", "-stalled", "2",
	}, more...)
}

func TestStalled(t *testing.T) {
	t.Parallel()
	secure, ca := (&naive{}).startTLS(t)
	for name, args := range map[string][]string{
		"HTTP/1.1":  stalledArgs(t, (&naive{}).start(t), "-scenario", "fan-out,private"),
		"HTTP/2":    stalledArgs(t, secure, "-http2", "-ca", ca),
		"https":     stalledArgs(t, secure, "-ca", ca),
		"at a rate": stalledArgs(t, (&naive{}).start(t), "-rate", "2000"),
	} {
		code, results, errs := runLoad(t, args...)
		if code != exitWhole || len(results) == 0 || len(results)%3 != 0 {
			t.Fatalf("%s: exit code %d, %+v, %s", name, code, results, errs)
		}
		for r := range slices.Chunk(results, 3) {
			for i, want := range []int64{3 * 40, 3 * 40, 2 * 40} {
				if r[i].Delivered != want || r[i].Expected != want {
					t.Errorf("%s: %s delivered %d of %d, want %d", name, r[i].Phase, r[i].Delivered, r[i].Expected, want)
				}
			}
			b := r[1].Beside
			if b == nil || b.Delivered <= 0 || b.P50 <= 0 || b.P99 <= 0 || r[0].Beside != nil || r[2].Beside != nil {
				t.Fatalf("%s: ratios %+v, want them of the second alone", name, b)
			}
			var text bytes.Buffer
			if err := r[1].text(&text); err != nil || !strings.Contains(text.String(), "to those before") {
				t.Errorf("%s: %v in %q", name, err, text.String())
			}
		}
	}
}

// TestStalled_comeBack has hubs that give those that come back something else than what they missed.
func TestStalled_comeBack(t *testing.T) {
	t.Parallel()
	for fault, want := range map[fault]func(result) bool{
		forgets: func(r result) bool { return r.Lost == 2 && r.Delivered == r.Expected-2 },
		doubles: func(r result) bool { return r.Repeated == 2 },
		// The two updates are of one publisher or of two: then only the order among the publishers shows it.
		turns: func(r result) bool { return r.Late == 2 || r.Disagreed == 2 },
	} {
		code, results, errs := runLoad(t, stalledArgs(t, (&naive{fault: fault}).start(t), "-stall", "1s")...)
		if code != exitBroken || len(results) != 3 || results[0].broken() || results[1].broken() || !want(results[2]) {
			t.Errorf("%s: exit code %d, %+v, %s", fault, code, results, errs)
		}
	}
}

// TestStalled_trimmed has a hub that has not kept what those that come back ask for.
func TestStalled_trimmed(t *testing.T) {
	t.Parallel()
	code, results, errs := runLoad(t, stalledArgs(t, (&naive{keeps: 10}).start(t), "-c", "1", "-stall", "1s")...)
	if code != exitWhole || len(results) != 3 || results[2].Delivered != 2*10 || results[2].Note != noteTrimmed {
		t.Errorf("exit code %d, %+v, %s; want 10 for each and a note", code, results, errs)
	}
}

// TestStalled_holdUp has a floor: one that does not read holds up all others there, once what it is owed is more than any system takes in
// for it. The floor has no history to come back for.
func TestStalled_holdUp(t *testing.T) {
	t.Parallel()
	url, _ := startFloor(t, "")
	code, results, errs := runLoad(t, stalledArgs(t, url, "-size", "200000", "-duration", "2s", "-stall", "2s")...)
	if code != exitBroken || len(results) != 2 || results[0].broken() || results[1].Lost == 0 {
		t.Errorf("exit code %d, %+v, %s; want losses beside those that stall alone", code, results, errs)
	}
}

func TestOver(t *testing.T) {
	r := result{DeliveredRate: 3, Delivery: &quant{P50: 4, P99: 10}}
	if b := r.over(&result{DeliveredRate: 6, Delivery: &quant{P50: 2, P99: 4}}); b == nil || *b != (beside{Delivered: 0.5, P50: 2, P99: 2.5}) {
		t.Errorf("over = %+v, want half as much, twice and two and a half times as late", b)
	}
	for _, none := range []result{{}, {Delivery: &quant{}}} {
		if b := r.over(&none); b != nil {
			t.Errorf("over nothing = %+v", b)
		}
	}
}
