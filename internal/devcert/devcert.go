package devcert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/smallstep/truststore"
)

const (
	// lifetime is below the 398 days that browsers accept of a server certificate.
	lifetime = 396 * 24 * time.Hour
	// maxLifetime is the longest life of an authority that is trusted.
	maxLifetime = 397 * 24 * time.Hour
	// renewBefore is how early a certificate is replaced.
	renewBefore = 30 * 24 * time.Hour

	caFile   = "ca.crt"
	certFile = "server.crt"
	keyFile  = "server.key"
)

// Certificate gives the certificate in dir, made first when there is none or when it would end within 30 days of now. made
// says that it is new, so that an authority trusted before is trusted no more. Files are 0600.
func Certificate(dir string, now time.Time) (cert tls.Certificate, made bool, err error) {
	cert, err = load(dir, now)
	if err == nil {
		return cert, false, nil
	}
	if errors.Is(err, fs.ErrPermission) { // anything else, a half-written pair included, is made anew: it is throw-away
		return tls.Certificate{}, false, fmt.Errorf("load development certificate: %w", err)
	}
	if err := create(dir, now); err != nil {
		return tls.Certificate{}, false, fmt.Errorf("make development certificate: %w", err)
	}
	cert, err = load(dir, now)
	return cert, true, err
}

var errEnding = errors.New("devcert: certificate is about to end")

func load(dir string, now time.Time) (tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, certFile), filepath.Join(dir, keyFile))
	if err != nil {
		return tls.Certificate{}, err
	}
	if _, err := os.Stat(filepath.Join(dir, caFile)); err != nil {
		return tls.Certificate{}, err
	}
	if now.Add(renewBefore).After(cert.Leaf.NotAfter) {
		return tls.Certificate{}, errEnding
	}
	return cert, nil
}

func create(dir string, now time.Time) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	notBefore, notAfter := now.Add(-time.Hour), now.Add(lifetime)
	ca := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "Cinnabar development CA " + now.UTC().Format(time.DateOnly), Organization: []string{"Cinnabar (localhost only)"}},
		NotBefore: notBefore, NotAfter: notAfter,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage:                    x509.KeyUsageCertSign,
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         []string{"localhost"},
		PermittedIPRanges:           loopback(),
	}
	leaf := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "localhost"},
		NotBefore: notBefore, NotAfter: notAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	caDER, leafDER, leafKey, err := sign(ca, leaf)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name, kind string
		der        []byte
	}{{caFile, "CERTIFICATE", caDER}, {certFile, "CERTIFICATE", leafDER}, {keyFile, "PRIVATE KEY", keyDER}} {
		block := pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.der})
		if err := os.WriteFile(filepath.Join(dir, f.name), block, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// loopback lists the addresses that the authority is limited to.
func loopback() []*net.IPNet {
	return []*net.IPNet{
		{IP: net.IPv4(127, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)},
		{IP: net.IPv6loopback, Mask: net.CIDRMask(128, 128)},
	}
}

// sign makes both certificates. The authority's key lives in this function alone.
func sign(ca, leaf *x509.Certificate) (caDER, leafDER []byte, leafKey *ecdsa.PrivateKey, err error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	leafKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, c := range []*x509.Certificate{ca, leaf} {
		if c.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
			return nil, nil, nil, err
		}
	}
	if caDER, err = x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey); err != nil {
		return nil, nil, nil, err
	}
	signed, err := x509.ParseCertificate(caDER)
	if err != nil {
		return nil, nil, nil, err
	}
	leafDER, err = x509.CreateCertificate(rand.Reader, leaf, signed, leafKey.Public(), caKey)
	return caDER, leafDER, leafKey, err
}

// ErrAuthority says that the authority in a folder is not one of this package's: trusting it could make certificates of other
// hosts valid.
var ErrAuthority = errors.New("devcert: not an authority for localhost alone")

// Trust puts the authority in dir into the stores of the system and the browsers. It may ask for an administrator's password. It
// returns ErrAuthority for one that is not limited as ours are: the folder may have come with somebody's repository.
func Trust(dir string) error {
	if err := checkAuthority(filepath.Join(dir, caFile)); err != nil {
		return fmt.Errorf("trust the development certificate: %w", err)
	}
	if err := truststore.InstallFile(filepath.Join(dir, caFile), truststore.WithFirefox()); err != nil {
		return fmt.Errorf("trust the development certificate: %w", err)
	}
	return nil
}

// Untrust takes the authority in dir out of the stores of the system and the browsers.
func Untrust(dir string) error {
	if err := truststore.UninstallFile(filepath.Join(dir, caFile), truststore.WithFirefox()); err != nil {
		return fmt.Errorf("no longer trust the development certificate: %w", err)
	}
	return nil
}

// checkAuthority returns nil for a file with one certificate, of an authority that is limited to localhost and loopback
// addresses. Nothing else may be in the file, since the programs that read it then are not this one.
func checkAuthority(file string) error {
	text, err := os.ReadFile(file) //nolint:gosec // a file of the data folder
	if err != nil {
		return err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" || !bytes.Equal(pem.EncodeToMemory(block), text) {
		return fmt.Errorf("%w: %s does not hold one certificate alone", ErrAuthority, file)
	}
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrAuthority, file, err)
	}
	limited := ca.IsCA && ca.PermittedDNSDomainsCritical && slices.Equal(ca.PermittedDNSDomains, []string{"localhost"}) &&
		len(ca.PermittedIPRanges) > 0 && ca.NotAfter.Sub(ca.NotBefore) <= maxLifetime
	for _, n := range ca.PermittedIPRanges {
		limited = limited && slices.ContainsFunc(loopback(), func(l *net.IPNet) bool { return l.String() == n.String() })
	}
	if !limited {
		return fmt.Errorf("%w: %s; remove its folder and start 'hub dev' again", ErrAuthority, file)
	}
	return nil
}
