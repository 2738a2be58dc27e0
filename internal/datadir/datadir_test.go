package datadir_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/datadir"
	"github.com/cinnabar-hub/cinnabar/internal/private"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "data")
	d, err := datadir.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(d.Join(".gitignore")); err != nil || string(raw) != "*\n" {
		t.Errorf(".gitignore = %q, %v", raw, err)
	}
	if _, err := d.HubURL(); !errors.Is(err, datadir.ErrNoData) {
		t.Errorf("HubURL = %v, want ErrNoData", err)
	}
	if err := d.WriteFile("hub.yaml", []byte("public_url: https://localhost:8443/hub\n")); err != nil {
		t.Fatal(err)
	}
	again, err := datadir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if u, err := again.HubURL(); err != nil || u != "https://localhost:8443/hub" {
		t.Errorf("HubURL = %q, %v", u, err)
	}
}

func TestOpen_refusesLooseModes(t *testing.T) {
	needs.PermissionBits(t)
	path := filepath.Join(t.TempDir(), "data")
	d, err := datadir.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.Join("authz.secret"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.CheckFiles(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(d.Join("authz.secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := d.CheckFiles(); !errors.Is(err, private.ErrLoose) {
		t.Errorf("CheckFiles = %v, want ErrLoose", err)
	}
	if err := os.Chmod(d.Join("authz.secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteFile("tls/server.key", nil); err != nil {
		t.Fatal(err)
	}
	if err := d.CheckFiles(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(d.Join("tls", "server.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := d.CheckFiles(); !errors.Is(err, private.ErrLoose) {
		t.Errorf("CheckFiles with a loose key = %v, want ErrLoose", err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.Open(path); !errors.Is(err, private.ErrLoose) {
		t.Errorf("Open = %v, want ErrLoose", err)
	}
}

func TestOpen_refusesWhatIsNotThere(t *testing.T) {
	if _, err := datadir.Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, datadir.ErrNoData) {
		t.Errorf("Open = %v, want ErrNoData", err)
	}
}

func TestLock(t *testing.T) {
	d, err := datadir.Create(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := d.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Lock(); !errors.Is(err, datadir.ErrLocked) {
		t.Errorf("a second Lock = %v, want ErrLocked", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	again, err := d.Lock()
	if err != nil {
		t.Fatalf("Lock after unlock: %v", err)
	}
	_ = again()
}
