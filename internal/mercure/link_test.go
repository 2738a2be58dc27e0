package mercure_test

import (
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/mercure"
)

func TestHubLink(t *testing.T) {
	for id, quoted := range map[string]string{
		"earliest":          "earliest",
		"urn:uuid:1":        "urn:uuid:1",
		`a"b\c,d;e`:         `a\"b\\c,d;e`,
		"é日":                "é日",
		"a\r\nX: y\x00\x7f": "aX: y",
	} {
		want := `<https://hub.example/.well-known/mercure>; rel="mercure"; last-event-id="` + quoted + `"`
		if got := mercure.HubLink("https://hub.example/.well-known/mercure", id); got != want {
			t.Errorf("HubLink(%q) = %s, want %s", id, got, want)
		}
	}
}
