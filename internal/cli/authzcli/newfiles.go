package authzcli

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/private"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

const (
	// clientKeyAlgorithm is the algorithm of key pairs made for clients.
	clientKeyAlgorithm = "ES256"
	// sessionKeyBytes is the size of a key of session.keys_file: half authenticates cookies, half encrypts them.
	sessionKeyBytes = 64
)

// newFiles are files that a command made; they go again unless it succeeds. The zero value has none.
type newFiles struct{ paths []string }

// keep makes them stay.
func (n *newFiles) keep() { n.paths = nil }

// remove takes back what was made.
func (n *newFiles) remove() {
	for _, path := range n.paths {
		_ = os.Remove(path) // what made the command fail is what there is to tell
	}
}

// write makes a file that only its owner can read. It replaces none: the error of an existing one wraps fs.ErrExist.
func (n *newFiles) write(path string, data []byte) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, private.FileMode) //nolint:gosec // the user says where it goes
	if err != nil {
		return "", err
	}
	n.paths = append(n.paths, path)
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", err
	}
	return path, nil
}

// keyPair makes a key pair: the private JWK goes to the file, the public JWK Set is returned with the absolute path of the file.
func (n *newFiles) keyPair(path string) (set json.RawMessage, absolute string, err error) {
	key, err := token.Generate(clientKeyAlgorithm)
	if err != nil {
		return nil, "", err
	}
	secret, err := key.PrivateJWK()
	if err != nil {
		return nil, "", err
	}
	if set, err = key.PublicJWKSet(); err != nil {
		return nil, "", err
	}
	absolute, err = n.write(path, append(secret, '\n'))
	if errors.Is(err, fs.ErrExist) {
		return nil, "", cli.Usagef("--key-file %s is there already, and a key is never replaced: name a new file", path)
	}
	if err != nil {
		return nil, "", fmt.Errorf("write private key: %w", err)
	}
	return set, absolute, nil
}

// sessionKeys makes a file with one key for a hub's cookies, and leaves one alone that is there. It returns its absolute path.
func (n *newFiles) sessionKeys(path string) (string, error) {
	key := make([]byte, sessionKeyBytes)
	if _, err := rand.Read(key); err != nil {
		return "", fmt.Errorf("draw session key: %w", err)
	}
	absolute, err := n.write(path, []byte(base64.RawURLEncoding.EncodeToString(key)+"\n"))
	if errors.Is(err, fs.ErrExist) {
		return filepath.Abs(path)
	}
	if err != nil {
		return "", fmt.Errorf("write session keys: %w", err)
	}
	return absolute, nil
}
