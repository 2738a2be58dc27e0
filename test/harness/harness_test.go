package harness_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/test/harness"
)

func TestReadEvents(t *testing.T) {
	stream := ": hello\n\nid: 1\nevent: note\ndata: one\ndata:two\n\nretry: 10\ndata: \n\n:\nid\r\ndata: three\r\n\r\ndata: unfinished\n"
	want := []harness.Event{{ID: "1", Type: "note", Data: "one\ntwo"}, {ID: "1", Data: ""}, {Data: "three"}}
	var got []harness.Event
	if err := harness.ReadEvents(strings.NewReader(stream), func(e harness.Event) bool { got = append(got, e); return true }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	n := 0
	if err := harness.ReadEvents(strings.NewReader(stream), func(harness.Event) bool { n++; return false }); err != nil || n != 1 {
		t.Errorf("read %d events after being told to stop: %v", n, err)
	}
}

func TestForm(t *testing.T) {
	page := `<head><title>x</title></head><form action="/other"><button name="a" value="no"></button></form>
<form method="post" action="/go?a=1&amp;b=2"><input type="hidden" name="form_token" value="a &#43; b">
<input name="seen" type="text"><button type="submit" name="answer" value="allow">Allow</button></form>`
	form := harness.Form(t, page, "allow")
	if form.Get("form_token") != "a + b" || form.Get("answer") != "allow" || form.Has("seen") {
		t.Errorf("form = %q", form)
	}
	if got := harness.Text(page); got != "Allow" {
		t.Errorf("text = %q: what is hidden must not show", got)
	}
}

func TestBuffer(t *testing.T) {
	b := harness.NewBuffer()
	go func() { _, _ = b.Write([]byte("one\ntwo\n")) }()
	if !b.WaitFor("two", harness.Patience) {
		t.Error("a text that came was not seen")
	}
	if b.WaitFor("three", time.Millisecond) {
		t.Error("a text that did not come was seen")
	}
	for range 2000 {
		_, _ = b.Write([]byte("a line of some length\n"))
	}
	if tail := b.Tail(); len(tail) > 17<<10 || !strings.HasPrefix(tail, "…\na line") {
		t.Errorf("the tail has %d bytes and begins with %q", len(tail), tail[:min(20, len(tail))])
	}
	b.Close()
	if b.WaitFor("three", harness.Patience) {
		t.Error("a text that cannot come any more was seen")
	}
}

func TestOAuthClient_TokenForm(t *testing.T) {
	form, header := harness.OAuthClient{ID: "a b", Secret: "s:/"}.TokenForm(map[string]string{"grant_type": "x"})
	req := http.Request{Header: header}
	if user, password, ok := req.BasicAuth(); !ok || user != "a+b" || password != "s%3A%2F" || form.Has("client_id") {
		t.Errorf("user %q, password %q, form %v", user, password, form)
	}
	if form, header := (harness.OAuthClient{ID: "spa"}).TokenForm(nil); form.Get("client_id") != "spa" || len(header) != 0 {
		t.Errorf("form %v, header %v", form, header)
	}
}
