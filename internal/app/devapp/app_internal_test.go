package devapp

import (
	"errors"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

func testOptions(t *testing.T) Options {
	t.Helper()
	return Options{
		Listen: "localhost:8443", HTTP: "localhost:8080", DataDir: filepath.Join(t.TempDir(), "it's data"),
		Executable: "/opt/cinnabar/hub", Logger: slog.New(slog.DiscardHandler),
	}
}

// The header files hold tokens of the HTTPS face, which the plain one refuses: what a page shows must work whatever face it is on.
func TestApp_pagesOfBothFacesShowTheSameCommands(t *testing.T) {
	a, err := New(t.Context(), testOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.engine.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.stack.Close(); err != nil {
			t.Error(err)
		}
	})
	info := a.Info()
	for _, s := range a.sites {
		w := httptest.NewRecorder()
		s.face.Echo.ServeHTTP(w, httptest.NewRequest(http.MethodGet, s.origin+"/", http.NoBody))
		page := html.UnescapeString(w.Body.String())
		for _, c := range info.Commands {
			if !strings.Contains(page, c.Line) {
				t.Errorf("the page of %s does not show %s", s.origin, c.Line)
			}
		}
	}
	for _, c := range info.Commands {
		if !strings.Contains(c.Line, `it'\''s data`) || strings.Contains(c.Line, info.PlainStartPage) {
			t.Errorf("%s: %s", c.Title, c.Line)
		}
	}
	if want := "/opt/cinnabar/hub dev --trust --data '"; !strings.HasPrefix(info.Trust, want) || !strings.HasSuffix(info.Trust, `it'\''s data'`) {
		t.Errorf("the line that makes the certificate trusted is %s", info.Trust)
	}
}

func TestNew_refusesToLeaveThisMachine(t *testing.T) {
	for _, address := range []string{"0.0.0.0:8444", "192.0.2.1:8444", "[::]:8444", "example.com:8444", "8444", "localhost:0", "localhost:http"} {
		for name, set := range map[string]func(*Options){
			"--listen": func(o *Options) { o.Listen = address },
			"--http":   func(o *Options) { o.HTTP = address },
			"--ops":    func(o *Options) { o.Ops = address },
		} {
			o := testOptions(t)
			set(&o)
			if _, err := New(t.Context(), o); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), name) {
				t.Errorf("New with %s %s = %v, want ErrOptions", name, address, err)
			}
		}
	}
}
