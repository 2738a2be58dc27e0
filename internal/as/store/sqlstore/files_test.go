package sqlstore_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/as/store/sqlstore"
	"github.com/cinnabar-hub/cinnabar/internal/as/store/storetest"
	"github.com/cinnabar-hub/cinnabar/internal/private"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

func secret() []byte { return bytes.Repeat([]byte{7}, 32) }

func options(path string) sqlstore.Options {
	return sqlstore.Options{Path: path, Secret: secret(), SecretFile: "data/secret", Migrate: true}
}

func mustOpen(t *testing.T, o sqlstore.Options) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil { // closing twice is harmless
			t.Error(err)
		}
	})
	return s
}

func mustPut(t *testing.T, s store.Store, id string) {
	t.Helper()
	if err := s.PutClient(t.Context(), store.Client{ID: id}); err != nil {
		t.Fatal(err)
	}
}

func TestOpen_options(t *testing.T) {
	for name, o := range map[string]sqlstore.Options{
		"no path":        {Secret: secret()},
		"no secret":      {Path: "x.db"},
		"a short secret": {Path: "x.db", Secret: secret()[1:]},
	} {
		if s, err := sqlstore.Open(t.Context(), o); err == nil {
			t.Errorf("%s: Open succeeded", name)
			_ = s.Close()
		}
	}
}

func TestOpen_modes(t *testing.T) {
	needs.PermissionBits(t)
	t.Run("makes folder 0700 and all files 0600", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "new", "deep", "authz.db")
		s := mustOpen(t, options(path))
		mustPut(t, s, "app")
		for name, want := range map[string]fs.FileMode{
			filepath.Dir(path): fs.ModeDir | 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600,
		} {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode() != want {
				t.Errorf("%s has mode %v, want %v", filepath.Base(name), info.Mode(), want)
			}
		}
	})
	for _, looser := range []struct {
		name, file string
		mode       fs.FileMode
		advice     string
	}{
		{"a folder that others can list", ".", 0o750, "chmod 0700"},
		{"a folder that others can enter", ".", 0o711, "chmod 0700"},
		{"a file that others can read", "authz.db", 0o640, "chmod 0600"},
		{"a log that others can write", "authz.db-wal", 0o602, "chmod 0600"},
	} {
		t.Run("refuses "+looser.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "data")
			path := filepath.Join(folder, "authz.db")
			s := mustOpen(t, options(path)) // stays open, so that the log is there
			mustPut(t, s, "app")
			target := filepath.Join(folder, looser.file)
			if err := os.Chmod(target, looser.mode); err != nil {
				t.Fatal(err)
			}
			for _, migrate := range []bool{true, false} {
				o := options(path)
				o.Migrate = migrate
				_, err := sqlstore.Open(t.Context(), o)
				if !errors.Is(err, private.ErrLoose) || !strings.Contains(err.Error(), looser.advice+" "+target) {
					t.Errorf("Open = %v, want advice to %s", err, looser.advice)
				}
			}
		})
	}
}

func TestOpen_links(t *testing.T) {
	needs.SymbolicLinks(t)
	root := t.TempDir()
	path := filepath.Join(root, "data", "authz.db")
	mustPut(t, mustOpen(t, options(path)), "app")
	link := filepath.Join(root, "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, options(link)) // root is open to others: what counts is where the file is
	if _, err := s.Client(t.Context(), "app"); err != nil {
		t.Error(err)
	}
}

func TestOpen_oddPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b", "100%41?mode=memory&x#y.db")
	if runtime.GOOS == "windows" {
		path = filepath.Join(t.TempDir(), "a b", "100%41&x#y.db")
	}
	mustPut(t, mustOpen(t, options(path)), "app")
	if err := private.CheckFile(path); err != nil {
		t.Error(err)
	}
}

func TestOpen_missing(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	o := options(filepath.Join(folder, "authz.db"))
	o.Migrate = false
	if _, err := sqlstore.Open(t.Context(), o); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open = %v, want fs.ErrNotExist", err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a command made the folder: %v", err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlstore.Open(t.Context(), o); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open = %v, want fs.ErrNotExist", err)
	}
	if made, err := os.ReadDir(folder); err != nil || len(made) != 0 {
		t.Errorf("a command made %v (%v)", made, err)
	}
}

func TestOpen_wrongSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "authz.db")
	mustOpen(t, options(path))
	for _, migrate := range []bool{true, false} {
		o := options(path)
		o.Secret, o.Migrate = bytes.Repeat([]byte{8}, 32), migrate
		_, err := sqlstore.Open(t.Context(), o)
		if !errors.Is(err, store.ErrSecret) || !strings.Contains(err.Error(), "data/secret") {
			t.Errorf("Open = %v, want store.ErrSecret that names the secret file", err)
		}
	}
}

// random returns 256 random bits as they stand in cookies, codes and tokens.
func random(t *testing.T) string {
	t.Helper()
	var b [32]byte
	if _, err := rand.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// hashed is under which such a secret is stored.
func hashed(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// TestStore_atRest gives the store one of each secret it has a part in, in the form that the port asks for, and looks for them in the
// bytes of all files: while the database is open, after it is closed, and in a backup.
func TestStore_atRest(t *testing.T) {
	const issuer = "https://auth.example.com"
	ctx, folder := t.Context(), filepath.Join(t.TempDir(), "data")
	s := mustOpen(t, options(filepath.Join(folder, "authz.db")))
	secrets := map[string]string{"the secret file": string(secret())}
	for _, name := range []string{
		"signing key", "client secret", "cookie", "binding cookie", "interaction", "request URI", "code", "refresh token", "rotated refresh token",
	} {
		secrets[name] = random(t)
	}
	secretHash := sha256.Sum256([]byte(secrets["client secret"]))
	secrets["hash of the client secret"] = string(secretHash[:]) // one that a person chose could be guessed from it
	now, later := time.Now(), time.Now().Add(time.Hour)
	grant := store.Grant{ID: "g1", Issuer: issuer, ClientID: "app", AccountID: "u_1", SessionID: "sid", CreatedAt: now, ExpiresAt: later}
	token := func(id string) store.IssuedToken {
		return store.IssuedToken{ID: id, Issuer: issuer, GrantID: "g1", Subject: "u_1", ClientID: "app", IssuedAt: now, ExpiresAt: later}
	}
	refresh := func(name string) store.RefreshToken {
		return store.RefreshToken{ID: hashed(secrets[name]), Issuer: issuer, ClientID: "app", GrantID: "g1", CreatedAt: now, ExpiresAt: later}
	}
	first := refresh("rotated refresh token")
	for i, err := range []error{
		s.SaveKeys(ctx, issuer, 0, []store.Key{{ID: "k", Issuer: issuer, Algorithm: "ES256", Private: []byte(secrets["signing key"])}}),
		s.PutClient(ctx, store.Client{ID: "app", AuthMethod: "client_secret_basic", SecretHash: secretHash[:]}),
		s.CreateAccount(ctx, store.Account{ID: "u_1", Username: "ada"}),
		s.CreateBrowserSession(ctx, store.BrowserSession{
			IDHash: hashed(secrets["cookie"]), SessionID: "sid", AccountID: "u_1", Issuer: issuer, ExpiresAt: later,
		}),
		s.CreatePushedRequest(ctx, store.PushedRequest{IDHash: hashed(secrets["request URI"]), Issuer: issuer, ClientID: "app", ExpiresAt: later}),
		s.BindPushedRequest(ctx, hashed(secrets["request URI"]), hashed(secrets["binding cookie"])),
		s.CreateInteraction(ctx, store.Interaction{
			IDHash: hashed(secrets["interaction"]), BindingHash: hashed(secrets["binding cookie"]), Issuer: issuer, ClientID: "app",
			PushedHash: hashed(secrets["request URI"]), ExpiresAt: later,
		}),
		s.CreateGrant(ctx, grant, &store.Code{
			Signature: hashed(secrets["code"]), Issuer: issuer, ClientID: "app", GrantID: "g1", CreatedAt: now, ExpiresAt: later,
		}),
		s.RedeemCode(ctx, hashed(secrets["code"]), now, token("t1"), &first),
		s.RotateRefreshToken(ctx, first.ID, now, time.Minute, refresh("refresh token"), token("t2")),
		s.UseRefreshToken(ctx, refresh("refresh token").ID, now, later, token("t3")),
		s.RevokeToken(ctx, "t3", now),
		func() error {
			_, err := s.EndSession(ctx, issuer, "sid", now)
			return err
		}(),
	} {
		if err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
	}
	storetest.NoneInClear(t, folder, issuer, secrets)
	copies := t.TempDir()
	if err := s.Backup(ctx, filepath.Join(copies, "authz.db")); err != nil {
		t.Fatal(err)
	}
	storetest.NoneInClear(t, copies, issuer, secrets)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	storetest.NoneInClear(t, folder, issuer, secrets)
}

func TestBackup_file(t *testing.T) {
	s := mustOpen(t, options(filepath.Join(t.TempDir(), "data", "authz.db")))
	mustPut(t, s, "app")
	folder := t.TempDir()
	path := filepath.Join(folder, "authz.db")
	if err := s.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if err := private.CheckFile(path); err != nil {
		t.Error(err)
	}
	names, err := os.ReadDir(folder)
	if err != nil || len(names) != 1 {
		t.Errorf("a backup made %v (%v), want one file", names, err)
	}
	// A command may be the first to open the copy: it opens, but not with another secret.
	if err := os.Chmod(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	o := options(path)
	o.Migrate, o.Secret = false, bytes.Repeat([]byte{8}, 32)
	if _, err := sqlstore.Open(t.Context(), o); !errors.Is(err, store.ErrSecret) {
		t.Errorf("Open of the copy with another secret = %v, want store.ErrSecret", err)
	}
	o.Secret = secret()
	if _, err := mustOpen(t, o).Client(t.Context(), "app"); err != nil {
		t.Error(err)
	}
}

// TestBackup_dangling checks that a backup does not write through a link that leads nowhere.
func TestBackup_dangling(t *testing.T) {
	needs.SymbolicLinks(t)
	s := mustOpen(t, options(filepath.Join(t.TempDir(), "data", "authz.db")))
	folder := t.TempDir()
	link := filepath.Join(folder, "authz.db")
	if err := os.Symlink(filepath.Join(folder, "elsewhere"), link); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), link); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Backup = %v, want fs.ErrExist", err)
	}
}
