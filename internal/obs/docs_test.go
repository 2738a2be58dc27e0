package obs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/obs"
)

func TestHubMetrics_areDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, m := range obs.HubMetrics() {
		rows++
		if !strings.Contains(string(page), "| `"+m.Name+"` |") || !strings.Contains(string(page), m.Help) {
			t.Errorf("docs/metrics.md does not explain %s as the code does: %s", m.Name, m.Help)
		}
	}
	if got := strings.Count(string(page), "\n| `cinnabar_"); got != rows {
		t.Errorf("docs/metrics.md lists %d metrics, there are %d", got, rows)
	}
}
