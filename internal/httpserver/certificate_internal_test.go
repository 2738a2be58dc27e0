package httpserver

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func writePair(t *testing.T, certFile, keyFile string, serial int64, modified time.Time) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: modified.Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: pkcs8},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, modified, modified); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCertificateFiles_followsTheFiles(t *testing.T) {
	dir, now := t.TempDir(), time.Now().Truncate(time.Second)
	certFile, keyFile := filepath.Join(dir, "c"), filepath.Join(dir, "k")
	writePair(t, certFile, keyFile, 1, now)
	var log bytes.Buffer
	f, err := OpenCertificateFiles(certFile, keyFile, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	clock := now
	f.now = func() time.Time { return clock }
	f.checked = clock
	serial := func() int64 {
		t.Helper()
		c, err := f.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf.SerialNumber.Int64()
	}
	writePair(t, certFile, keyFile, 2, now.Add(time.Minute))
	if got := serial(); got != 1 {
		t.Errorf("serial = %d at once, want the files to be looked at once a minute", got)
	}
	clock = clock.Add(time.Minute)
	if got := serial(); got != 2 {
		t.Errorf("serial = %d after a minute, want 2", got)
	}
	if err := os.WriteFile(keyFile, []byte("half a ke"), 0o600); err != nil {
		t.Fatal(err)
	}
	clock = clock.Add(time.Minute)
	if got := serial(); got != 2 || !strings.Contains(log.String(), "certificate not reloaded") {
		t.Errorf("serial = %d with a bad key, want 2 and a warning in %q", got, log.String())
	}
	writePair(t, certFile, keyFile, 3, now.Add(3*time.Minute))
	clock = clock.Add(time.Minute)
	if got := serial(); got != 3 {
		t.Errorf("serial = %d after the repair, want 3", got)
	}
	if err := os.Remove(certFile); err != nil {
		t.Fatal(err)
	}
	clock = clock.Add(time.Minute)
	if got := serial(); got != 3 {
		t.Errorf("serial = %d without file, want 3", got)
	}
}
