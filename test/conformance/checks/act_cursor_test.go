package checks

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

func TestActLinks(t *testing.T) {
	t.Parallel()
	type params = map[string]string
	for value, want := range map[string][]actLink{
		``:                                       nil,
		`<https://h.example/m>; rel="mercure"`:   {{"https://h.example/m", params{"rel": "mercure"}}},
		`</m>;REL=mercure;last-event-id=urn:x:1`: {{"/m", params{"rel": "mercure", "last-event-id": "urn:x:1"}}},
		`</m> ; rel = "mercure" ; last-event-id="a\"b\\c,d;e<f>"`: {{"/m", params{"rel": "mercure", "last-event-id": `a"b\c,d;e<f>`}}},
		`</a>; rel=self, </m>; rel="x mercure"; type="mercure"`:   {{"/a", params{"rel": "self"}}, {"/m", params{"rel": "x mercure", "type": "mercure"}}},
		`</m>; rel=mercure; rel=self; flag`:                       {{"/m", params{"rel": "mercure", "flag": ""}}},
		`</m>; last-event-id*=UTF-8''%C3%A9`:                      {{"/m", params{"last-event-id*": "UTF-8''%C3%A9"}}},
		`</m>; rel="open`:                                         {{"/m", params{"rel": "open"}}},
		`</m`:                                                     nil,
	} {
		got := actReadLinks(&wire.Response{Fields: []wire.Field{{Name: "link", Value: value}}})
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(actLink{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", value, diff)
		}
	}
}
