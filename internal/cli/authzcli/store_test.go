package authzcli_test

import (
	"context"
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite" // to make a store of another version

	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

type backupJSON struct {
	Database   string `json:"database"`
	SecretFile string `json:"secret_file"`
	Bytes      int64  `json:"bytes"`
}

// TestBackup copies the store while others write, and restores it into another place.
func TestBackup(t *testing.T) {
	p := serve(t)
	token := p.mint(t, "--subscribe", "*").Token
	p.ok(t, "client", "create", "--id", "before", "--grant-type", "client_credentials")
	ctx, cancel := context.WithCancel(t.Context())
	begun, writing := make(chan struct{}), make(chan int, 1)
	go func() {
		n := 0
		for ctx.Err() == nil {
			if n == 1 {
				close(begun)
			}
			if _, err := p.core.Accounts.Create(context.Background(), "person"+string(rune('a'+n%26))+time.Now().Format("150405.000000000"), "correct horse battery", nil); err != nil {
				t.Error(err)
				break
			}
			n++
		}
		writing <- n
	}()
	select {
	case <-begun:
	case <-writing:
		t.Fatal("nobody writes")
	}
	dir := filepath.Join(p.dir, "backup", "today")
	got := decode[backupJSON](t, p.ok(t, "backup", dir, "--with-secret", "--json"))
	cancel()
	<-writing
	want := backupJSON{Database: filepath.Join(dir, "authz.db"), SecretFile: filepath.Join(dir, "authz.secret"), Bytes: got.Bytes}
	if diff := cmp.Diff(want, got); diff != "" || got.Bytes < 4096 {
		t.Errorf("backup --json differs (-want +got):\n%s", diff)
	}
	t.Run("closed to others", func(t *testing.T) {
		needs.PermissionBits(t)
		for path, mode := range map[string]fs.FileMode{dir: 0o700, want.Database: 0o600, want.SecretFile: 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s has mode %v (%v), want %v", path, info.Mode().Perm(), err, mode)
			}
		}
	})
	t.Run("replaces nothing", func(t *testing.T) {
		p.fails(t, cli.ExitUsage, "replaces nothing", "backup", dir)
		p.fails(t, cli.ExitUsage, "replaces nothing", "backup", dir, "--with-secret")
		if info, err := os.Stat(want.Database); err != nil || info.Size() != got.Bytes {
			t.Errorf("the backup changed: %v", err)
		}
		if err := os.Remove(want.SecretFile); err != nil {
			t.Fatal(err)
		}
		p.fails(t, cli.ExitUsage, "replaces nothing", "backup", dir, "--with-secret")
		if _, err := os.Stat(want.SecretFile); err == nil {
			t.Error("a backup that failed left the secret behind")
		}
	})
	t.Run("restored", func(t *testing.T) {
		fresh := t.TempDir()
		path := filepath.Join(fresh, "authz.yaml")
		if err := os.WriteFile(path, []byte(configuration), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(fresh, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
		for from, to := range map[string]string{want.Database: "authz.db", filepath.Join(p.dir, "data", "authz.secret"): "authz.secret"} {
			raw, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(fresh, "data", to), raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		restored := &place{dir: fresh, config: path}
		if judged, code := restored.judged(t, "inspect", token); !judged.Valid || code != cli.ExitOK {
			t.Errorf("the restored server refuses the token it had issued, at %s", judged.Failed)
		}
		if out := restored.ok(t, "client", "list"); !strings.Contains(out, "before") {
			t.Errorf("the restored server has the clients\n%s", out)
		}
	})
	if events := p.audited(t); events[len(events)-1] != "store_backed_up" {
		t.Errorf("audit trail: %v", events)
	}
	t.Run("nowhere", func(t *testing.T) {
		p.fails(t, cli.ExitUsage, "is a variable unset", "backup", "")
	})
	t.Run("in words", func(t *testing.T) {
		other := filepath.Join(p.dir, "other")
		if out := p.ok(t, "backup", other); out != filepath.Join(other, "authz.db")+"\n" {
			t.Errorf("backup prints %q", out)
		}
		if _, err := os.Stat(filepath.Join(other, "authz.secret")); err == nil {
			t.Error("the secret was copied without --with-secret")
		}
	})
	t.Run("refuses a folder others can read", func(t *testing.T) {
		needs.PermissionBits(t)
		open := filepath.Join(p.dir, "open")
		if err := os.Mkdir(open, 0o755); err != nil {
			t.Fatal(err)
		}
		p.fails(t, cli.ExitFailure, "chmod 0700", "backup", open)
	})
}

// A command that is interrupted before it is done has failed.
func TestInterrupted(t *testing.T) {
	p := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := filepath.Join(p.dir, "backup")
	for _, args := range [][]string{{"backup", dir}, {"client", "list"}, {"key", "rotate"}} {
		if r := executeIn(ctx, cli.Env{Args: append(args, "--config", p.config)}); r != (result{cli.ExitFailure, "", "authz: interrupted\n"}) {
			t.Errorf("authz %s: %+v", strings.Join(args, " "), r)
		}
	}
}

// TestOtherSchema: a command does not touch a store of another version, and says which program does.
func TestOtherSchema(t *testing.T) {
	p := serve(t)
	db, err := sql.Open("sqlite", filepath.Join(p.dir, "data", "authz.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, version := range []int{99, 1} {
		if _, err := db.ExecContext(t.Context(), `UPDATE meta SET number = ? WHERE name = 'schema_version'`, version); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"client", "list"},
			{"client", "create", "--id", "x", "--grant-type", "client_credentials"},
			{"client", "delete", "spa"},
			{"grant", "list"},
			{"grant", "revoke", "g"},
			{"key", "list"},
			{"key", "rotate"},
			{"user", "list"},
			{"backup", filepath.Join(p.dir, "b")},
			{"token", "mint", "--subscribe", "*"},
			{"token", "inspect", "x.y.z"},
			{"token", "explain", "x.y.z"},
			{"token", "revoke", "--jti", "j"},
		} {
			p.fails(t, cli.ExitFailure, "use the authz program of the same version as the server", args...)
		}
		var now int
		if err := db.QueryRowContext(t.Context(), `SELECT number FROM meta WHERE name = 'schema_version'`).Scan(&now); err != nil || now != version {
			t.Errorf("the schema version is %d (%v) now, want it left at %d", now, err, version)
		}
	}
}

func TestPlace(t *testing.T) {
	p := serve(t)
	for name, c := range map[string]struct {
		code int
		want string
		args []string
	}{
		"none":           {cli.ExitUsage, "give --config FILE or --data DIR", []string{"client", "list"}},
		"two":            {cli.ExitUsage, "config data", []string{"client", "list", "--config", p.config, "--data", p.dir}},
		"a missing file": {cli.ExitUsage, "nosuch", []string{"client", "list", "--config", "nosuch.yaml"}},
		"no data folder": {cli.ExitUsage, "start 'hub dev --data nowhere' first", []string{"client", "list", "--data", "nowhere"}},
	} {
		if r := execute(t, "", c.args...); r.code != c.code || r.stdout != "" || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: code %d, %q; want %d about %q", name, r.code, r.stderr, c.code, c.want)
		}
	}
	t.Run("the environment is for --config", func(t *testing.T) {
		data := filepath.Join(p.dir, "data")
		if err := os.WriteFile(filepath.Join(data, "authz.yaml"), []byte(strings.ReplaceAll(configuration, "data/", "")), 0o600); err != nil {
			t.Fatal(err)
		}
		environ := []string{"CINNABAR_AUTHZ_STORE_PATH=" + filepath.Join(t.TempDir(), "another.db")}
		for place, want := range map[string]int{"--config=" + p.config: cli.ExitFailure, "--data=" + data: cli.ExitOK} {
			if r := executeIn(t.Context(), cli.Env{Args: []string{"client", "list", place}, Environ: environ}); r.code != want {
				t.Errorf("%s: %+v, want code %d", place, r, want)
			}
		}
	})
	t.Run("no store yet", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "authz.yaml")
		if err := os.WriteFile(path, []byte(configuration), 0o600); err != nil {
			t.Fatal(err)
		}
		(&place{config: path}).fails(t, cli.ExitFailure, "start the server once first", "key", "list")
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), "data")); err == nil {
			t.Error("a command made the folder of a store")
		}
	})
}

func TestUser(t *testing.T) {
	p := serve(t)
	r := p.feed(t, "correct horse battery\n", "user", "add", "--password-stdin", "--role", "editor", "--attribute", "team=red", "--json", "Alice")
	type user struct {
		Subject    string            `json:"sub"`
		Username   string            `json:"username"`
		Roles      []string          `json:"roles"`
		Attributes map[string]string `json:"attributes"`
		Demo       bool              `json:"demo"`
		Disabled   bool              `json:"disabled"`
		CreatedAt  time.Time         `json:"created_at"`
	}
	got := decode[user](t, r.stdout)
	want := user{Subject: got.Subject, Username: "alice", Roles: []string{"editor"}, Attributes: map[string]string{"team": "red"}, CreatedAt: got.CreatedAt}
	if diff := cmp.Diff(want, got); diff != "" || !strings.HasPrefix(got.Subject, "u_") || got.CreatedAt.IsZero() {
		t.Errorf("user add --json differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]user{got}, decode[[]user](t, p.ok(t, "user", "list", "--json"))); diff != "" {
		t.Errorf("user list --json differs (-want +got):\n%s", diff)
	}
	if r := p.feed(t, "correct horse battery\n", "user", "add", "--password-stdin", "bob"); r.code != cli.ExitOK || !strings.HasPrefix(r.stdout, "u_") {
		t.Errorf("user add prints %q, code %d", r.stdout, r.code)
	}
	for name, c := range map[string]struct {
		code        int
		stdin, want string
		args        []string
	}{
		"taken":          {cli.ExitFailure, "correct horse battery\n", "already", []string{"--password-stdin", "ALICE"}},
		"no password":    {cli.ExitUsage, "\n", "empty", []string{"--password-stdin", "carol"}},
		"weak":           {cli.ExitUsage, "abc\n", "password", []string{"--password-stdin", "carol"}},
		"no name":        {cli.ExitUsage, "correct horse battery\n", "user name", []string{"--password-stdin", ""}},
		"from no where":  {cli.ExitUsage, "", "--password-stdin", []string{"carol"}},
		"an argument":    {cli.ExitUsage, "", "accepts 1 arg", []string{"--password-stdin", "carol", "secret"}},
		"odd attributes": {cli.ExitUsage, "", "attribute", []string{"--attribute", "x", "carol"}},
	} {
		r := p.feed(t, c.stdin, append([]string{"user", "add"}, c.args...)...)
		if r.code != c.code || r.stdout != "" || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: code %d, %q; want %d about %q", name, r.code, r.stderr, c.code, c.want)
		}
	}
	if diff := cmp.Diff([]string{"user_added", "user_added"}, p.audited(t)); diff != "" {
		t.Errorf("audit trail: %s", diff)
	}
}

func TestCompletion(t *testing.T) {
	p := serve(t)
	alice, err := p.core.Accounts.Create(t.Context(), "alice", "correct horse battery", nil)
	if err != nil {
		t.Fatal(err)
	}
	p.ok(t, "client", "create", "--id", "worker", "--grant-type", "client_credentials", "--name", "A worker")
	p.grant(t, "g1", alice, "spa", time.Minute)
	p.grant(t, "old", alice, "spa", 2*time.Hour)
	words := func(args ...string) string {
		t.Helper()
		r := execute(t, "", append([]string{"__complete"}, args...)...)
		if r.code != cli.ExitOK {
			t.Fatalf("%v: %s", args, r.stderr)
		}
		var out []string
		for line := range strings.Lines(r.stdout) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			out = append(out, word)
		}
		return strings.Join(out, " ")
	}
	at := []string{"--config", p.config}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"worker :4", append([]string{"client", "delete"}, append(at, "")...)},
		{":4", append([]string{"client", "delete"}, append(at, "worker", "")...)},
		{"g1 :4", append([]string{"grant", "revoke"}, append(at, "")...)},
		{"alice :4", append([]string{"grant", "list"}, append(at, "--user", "")...)},
		{"spa worker :4", append([]string{"grant", "list"}, append(at, "--client", "")...)},
		{"publish subscribe :4", []string{"token", "explain", "--action", ""}},
		{"ES256 EdDSA RS256 :4", []string{"key", "rotate", "--alg", ""}},
		{":4", []string{"client", "delete", ""}}, // no place yet: nothing, and no error
		{":4", []string{"client", "delete", "--config", "nosuch", ""}},
		{":4", []string{"key", "list", ""}},
		{":16", []string{"backup", ""}},
	} {
		if got := words(c.args...); got != c.want {
			t.Errorf("completion of %v = %q, want %q", c.args, got, c.want)
		}
	}
}
