package storetest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// NoneInClear fails the test if one of the secrets, by a name for it, stands in a file under the folder: as it is, as the bytes it
// encodes when it is base64, or as hexadecimal or base64 of itself. The folder has to hold the marker, something that is no secret and is
// stored beside them, so that a look into the wrong files is noticed. It may be called while the database is open: its write-ahead log
// is read too.
func NoneInClear(tb testing.TB, folder, marker string, secrets map[string]string) {
	tb.Helper()
	forms := map[string][][]byte{}
	for name, secret := range secrets {
		if len(secret) < 16 {
			tb.Fatalf("%s is too short to look for", name)
		}
		forms[name] = secretForms(secret)
	}
	found := false
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path) //nolint:gosec // a file of the test
		if err != nil {
			return err
		}
		found = found || bytes.Contains(data, []byte(marker))
		for name, list := range forms {
			for _, form := range list {
				if bytes.Contains(data, form) {
					tb.Errorf("%s stands in %s in clear", name, d.Name())
					break
				}
			}
		}
		return nil
	})
	check(tb, "read files", err)
	if !found {
		tb.Errorf("%q stands in no file: the test looked into the wrong ones", marker)
	}
}

func secretForms(secret string) [][]byte {
	forms := [][]byte{[]byte(secret)}
	raws := [][]byte{[]byte(secret)}
	for _, encoding := range []*base64.Encoding{base64.RawURLEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.StdEncoding} {
		if raw, err := encoding.DecodeString(secret); err == nil && len(raw) >= 12 {
			raws = append(raws, raw)
			forms = append(forms, raw)
		}
	}
	for _, raw := range raws {
		forms = append(forms, []byte(hex.EncodeToString(raw)), []byte(base64.RawStdEncoding.EncodeToString(raw)),
			[]byte(base64.RawURLEncoding.EncodeToString(raw)))
	}
	return forms
}
