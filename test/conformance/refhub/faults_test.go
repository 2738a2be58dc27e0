package refhub_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/test/conformance/refhub"
)

func TestEveryFaultIsPlantedAndListed(t *testing.T) {
	listed := map[string]bool{}
	shape := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	for _, f := range refhub.Faults() {
		if listed[f.Name] {
			t.Errorf("fault %s is listed twice", f.Name)
		}
		listed[f.Name] = true
		if !shape.MatchString(f.Name) || !strings.Contains(f.Check, "/") || !strings.HasSuffix(f.Does, ".") {
			t.Errorf("fault %+v is not described well", f)
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	planted := map[string]bool{}
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\.fault(?:If)?\("([^"]+)"`).FindAllStringSubmatch(string(source), -1) {
			planted[m[1]] = true
		}
	}
	for name := range planted {
		if !listed[name] {
			t.Errorf("fault %s is planted and not listed", name)
		}
	}
	for _, f := range refhub.Decisions() {
		if !planted[f.Name] {
			t.Errorf("fault %s is listed and not planted", f.Name)
		}
	}
}
