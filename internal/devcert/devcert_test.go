package devcert_test

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/devcert"
)

func authority(t *testing.T, dir string) (*x509.CertPool, []byte) {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatal("ca.crt holds no certificate")
	}
	return pool, pem
}

func TestCertificate(t *testing.T) {
	dir, now := filepath.Join(t.TempDir(), "tls"), time.Now()
	cert, made, err := devcert.Certificate(dir, now)
	if err != nil || !made {
		t.Fatalf("made = %v, err = %v", made, err)
	}
	pool, first := authority(t, dir)
	for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
		if _, err := cert.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: pool, CurrentTime: now}); err != nil {
			t.Errorf("verify for %s: %v", name, err)
		}
	}
	if life := cert.Leaf.NotAfter.Sub(cert.Leaf.NotBefore); life > 397*24*time.Hour {
		t.Errorf("certificate lives %v", life)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("files = %v, %v: the key of the authority must not be kept", entries, err)
	}

	t.Run("is kept", func(t *testing.T) {
		again, made, err := devcert.Certificate(dir, now.Add(24*time.Hour))
		if err != nil || made || !again.Leaf.Equal(cert.Leaf) {
			t.Errorf("made = %v, err = %v", made, err)
		}
	})
	t.Run("is renewed before its end, with a new authority", func(t *testing.T) {
		_, made, err := devcert.Certificate(dir, now.Add(380*24*time.Hour))
		if err != nil || !made {
			t.Fatalf("made = %v, err = %v", made, err)
		}
		if _, second := authority(t, dir); string(second) == string(first) {
			t.Error("the authority's key must have been discarded, yet the authority is the same")
		}
	})
}

func TestCertificate_authorityIsLimitedToLoopback(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := devcert.Certificate(dir, time.Now()); err != nil {
		t.Fatal(err)
	}
	_, raw := authority(t, dir)
	block, _ := pem.Decode(raw)
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if !ca.PermittedDNSDomainsCritical || len(ca.PermittedDNSDomains) != 1 || ca.PermittedDNSDomains[0] != "localhost" {
		t.Errorf("permitted domains = %v, critical %v", ca.PermittedDNSDomains, ca.PermittedDNSDomainsCritical)
	}
	if len(ca.PermittedIPRanges) != 2 || !ca.MaxPathLenZero {
		t.Errorf("permitted addresses = %v, path length zero %v", ca.PermittedIPRanges, ca.MaxPathLenZero)
	}
}
