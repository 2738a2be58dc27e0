package devcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestTrust_refusesOtherAuthorities(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := Certificate(dir, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := checkAuthority(filepath.Join(dir, caFile)); err != nil {
		t.Errorf("our own: %v", err)
	}
	ours := func() *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(24 * time.Hour),
			IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
			PermittedDNSDomainsCritical: true, PermittedDNSDomains: []string{"localhost"}, PermittedIPRanges: loopback(),
		}
	}
	if err := checkAuthority(filepath.Join(folderWith(t, ours(), 1), caFile)); err != nil {
		t.Fatalf("one like ours: %v", err)
	}
	for name, change := range map[string]func(*x509.Certificate){
		"without limits": func(c *x509.Certificate) {
			c.PermittedDNSDomainsCritical, c.PermittedDNSDomains, c.PermittedIPRanges = false, nil, nil
		},
		"with limits that may be ignored": func(c *x509.Certificate) { c.PermittedDNSDomainsCritical = false },
		"for another name too":            func(c *x509.Certificate) { c.PermittedDNSDomains = append(c.PermittedDNSDomains, "example.com") },
		"for every address":               func(c *x509.Certificate) { c.PermittedIPRanges = nil },
		"for another address too": func(c *x509.Certificate) {
			c.PermittedIPRanges = append(c.PermittedIPRanges, &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)})
		},
		"for ten years": func(c *x509.Certificate) { c.NotAfter = c.NotBefore.Add(10 * 365 * 24 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			c := ours()
			change(c)
			if err := Trust(folderWith(t, c, 1)); !errors.Is(err, ErrAuthority) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("two in one file", func(t *testing.T) {
		if err := Trust(folderWith(t, ours(), 2)); !errors.Is(err, ErrAuthority) {
			t.Errorf("got %v", err)
		}
	})
}

// folderWith makes a folder with this authority, so many times, as a repository could bring it along.
func folderWith(t *testing.T, c *x509.Certificate, times int) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for range times {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, caFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
