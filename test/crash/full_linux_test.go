package crash_test

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cinnabar-hub/cinnabar/test/harness"
)

// troubles counts the lines of a log that ask for a person.
func troubles(log string) (lines []string) {
	for line := range strings.Lines(log) {
		if regexp.MustCompile(`level=(WARN|ERROR)`).MatchString(line) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// full is the state of the test that fills the hub's disk.
type full struct {
	t    *testing.T
	hub  *plainHub
	disk *harness.SmallDisk
	http *http.Client
	kept []string // ids that were acknowledged, in order
	n    int
}

// publish publishes one update larger than a page, so that it never fits into what a file has left, and gives the status.
func (f *full) publish() (id string, status int) {
	f.t.Helper()
	f.n++
	id = fmt.Sprintf("update-%03d", f.n)
	form := url.Values{"topic": {everything}, "id": {id}, "data": {strings.Repeat("y", 6000)}, "private": {"on"}}
	resp, body := harness.Do(f.t, f.http, http.MethodPost, f.hub.url, form, harness.Bearer(f.hub.publish))
	if resp.StatusCode == http.StatusOK {
		f.kept = append(f.kept, id)
	} else if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json") {
		f.t.Errorf("no problem document: %q %s", resp.Header.Get("Content-Type"), body)
	}
	return id, resp.StatusCode
}

// must publishes and wants an acknowledgement.
func (f *full) must() string {
	f.t.Helper()
	id, status := f.publish()
	if status != http.StatusOK {
		f.t.Fatalf("publish = %d", status)
	}
	return id
}

// refused publishes from many at once, and wants refusals that a client understands as temporary.
func (f *full) refused(times int) {
	f.t.Helper()
	var all sync.WaitGroup
	for p := range publishers {
		all.Go(func() {
			for n := range times {
				form := url.Values{"topic": {everything}, "id": {fmt.Sprintf("refused-%d-%d", p, n)}, "data": {strings.Repeat("z", 6000)}}
				resp, body, err := harness.Try(f.t.Context(), f.http, http.MethodPost, f.hub.url, form, harness.Bearer(f.hub.publish))
				if err != nil {
					f.t.Error(err)
				} else if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
					f.t.Errorf("publish on a full disk = %d, Retry-After %q: %s", resp.StatusCode, resp.Header.Get("Retry-After"), body)
				}
			}
		})
	}
	all.Wait()
}

// cursor checks that the newest update is still the one that was acknowledged last.
func (f *full) cursor() {
	f.t.Helper()
	newest := f.kept[len(f.kept)-1]
	s := f.subscribe(newest)
	defer s.Close()
	if got := s.Resp.Header.Get("Mercure-Last-Event-ID"); got != newest {
		f.t.Errorf("resumed from %q, want %q", got, newest)
	}
	out, stderr, code := f.disk.Command(f.t, "", "hub", "history", "stats", "--json", "--config", f.hub.config)
	if m := regexp.MustCompile(`"last_id":\s*"([^"]*)"`).FindStringSubmatch(out); code != 0 || m == nil || m[1] != newest {
		f.t.Errorf("hub history stats: exit %d, want %s as the last id: %s %s", code, newest, out, stderr)
	}
}

func (f *full) subscribe(cursor string) *harness.Stream {
	f.t.Helper()
	return harness.Subscribe(f.t, f.http, f.hub.url+"?match=*&last_event_id="+url.QueryEscape(cursor), harness.Bearer(f.hub.subscribe))
}

// same checks that a stream brings these updates next, and no others.
func (f *full) same(s *harness.Stream, want []string) {
	f.t.Helper()
	var got []string
	for range want {
		got = append(got, s.NextEvent(f.t).ID)
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("saw %q, want %q", got, want)
	}
}

// TestFullDisk_hub fills the disk of a hub that runs: publishing stops, nothing else does, and it goes on by itself (I7, HIST).
func TestFullDisk_hub(t *testing.T) {
	disk := harness.NewSmallDisk(t, 4<<20)
	f := &full{t: t, disk: disk, hub: newPlainHub(t, t.TempDir(), "segments", filepath.Join(disk.Path, "history")), http: harness.Client(t, "")}
	h := disk.Start(t, "hub", "serve", "--config", f.hub.config)
	h.WaitFor("hub is ready")
	live := []*harness.Stream{f.subscribe("earliest"), f.subscribe("earliest")}
	for range 5 {
		f.must()
	}
	for round := range 3 {
		disk.Fill(t)
		before := troubles(h.Out.String())
		f.refused(10)
		f.cursor()
		during := troubles(h.Out.String())[len(before):]
		if len(during) == 0 || len(during) > 3 || !strings.Contains(strings.Join(during, "\n"), "no space left") {
			t.Errorf("%d lines of the log are about %d refused publishes, among them:\n%s",
				len(during), publishers*10, strings.Join(during[:min(5, len(during))], "\n"))
		}
		disk.Free(t)
		for range 3 {
			f.must()
		}
		for _, s := range live { // the readers have stayed, and see what was acknowledged and nothing else
			f.same(s, f.kept[len(f.kept)-3-5*(1-min(round, 1)):])
		}
	}
	f.same(f.subscribe("earliest"), f.kept)
	f.same(f.subscribe(f.kept[2]), f.kept[3:])

	t.Run("killed and started again while the disk is full", func(t *testing.T) {
		f.t = t
		disk.Fill(t)
		h.Kill()
		h = disk.Start(t, "hub", "serve", "--config", f.hub.config)
		h.WaitFor("hub is ready")
		s := f.subscribe("earliest")
		f.same(s, f.kept)
		f.refused(1)
		f.cursor()
		disk.Free(t)
		f.same(s, []string{f.must()})
	})
}
