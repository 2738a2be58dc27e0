package client

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

func TestNames_areThoseOfTheProtocol(t *testing.T) {
	for got, want := range map[string]string{
		Earliest:          mercure.Earliest,
		paramMatch:        mercure.ParamMatch,
		paramMatchPattern: mercure.ParamMatchPrefix + string(topic.URLPattern),
		paramLastEventID:  mercure.ParamLastEventID,
		fieldTopic:        mercure.FieldTopic, fieldData: mercure.FieldData, fieldPrivate: mercure.FieldPrivate,
		fieldID: mercure.FieldID, fieldType: mercure.FieldType, fieldRetry: mercure.FieldRetry,
		headerLastEventID:        mercure.HeaderLastEventID,
		headerMercureLastEventID: mercure.HeaderMercureLastEventID,
		formMediaType:            mercure.FormMediaType,
		eventStreamMediaType:     mercure.EventStreamMediaType,
		relHub:                   mercure.LinkRel,
	} {
		if got != want {
			t.Errorf("the client says %q, the protocol %q", got, want)
		}
	}
}

// A program that links the client links nothing else of the project's, and nothing of anybody else.
func TestDependencies(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/cinnabar-hub/cinnabar/"
	if diff := cmp.Diff([]string{module + "internal/sse", module + "client"}, strings.Fields(string(out))); diff != "" {
		t.Errorf("dependencies (-want +got):\n%s", diff)
	}
}
