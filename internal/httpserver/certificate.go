package httpserver

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateCheckInterval is how often the files of a certificate are looked at, at most.
const certificateCheckInterval = time.Minute

// CertificateFiles serves a certificate from two PEM files and picks up a renewed one without a restart. When the new files
// cannot be used, the old certificate stays and the failure is logged. It is safe for concurrent use.
type CertificateFiles struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time

	mu      sync.Mutex
	current *tls.Certificate
	stamp   [2]time.Time // modification times of the files that current was read from
	checked time.Time
}

// OpenCertificateFiles reads the certificate chain and its key once, so that bad files are an error at start.
func OpenCertificateFiles(certFile, keyFile string, log *slog.Logger) (*CertificateFiles, error) {
	if log == nil {
		return nil, ErrNoLogger
	}
	f := &CertificateFiles{certFile: certFile, keyFile: keyFile, log: log, now: time.Now}
	stamp, err := f.stat()
	if err != nil {
		return nil, err
	}
	f.current, err = f.load()
	if err != nil {
		return nil, err
	}
	f.stamp, f.checked = stamp, f.now()
	return f, nil
}

// GetCertificate has the signature of tls.Config.GetCertificate.
func (f *CertificateFiles) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); now.Sub(f.checked) >= certificateCheckInterval {
		f.checked = now
		f.refresh()
	}
	return f.current, nil
}

func (f *CertificateFiles) refresh() {
	stamp, err := f.stat()
	if err == nil && stamp == f.stamp {
		return
	}
	var c *tls.Certificate
	if err == nil {
		c, err = f.load()
	}
	if err != nil {
		f.log.Warn("certificate not reloaded", slog.String("error", err.Error()))
		return
	}
	f.current, f.stamp = c, stamp
	f.log.Info("certificate reloaded")
}

func (f *CertificateFiles) stat() (stamp [2]time.Time, err error) {
	for i, name := range [2]string{f.certFile, f.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return stamp, fmt.Errorf("read certificate: %w", err)
		}
		stamp[i] = info.ModTime()
	}
	return stamp, nil
}

func (f *CertificateFiles) load() (*tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(f.certFile, f.keyFile)
	if err != nil {
		return nil, fmt.Errorf("load certificate: %w", err)
	}
	return &c, nil
}
