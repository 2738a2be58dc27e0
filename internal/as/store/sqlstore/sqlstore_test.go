package sqlstore_test

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/as/store/sqlstore"
	"github.com/cinnabar-hub/cinnabar/internal/as/store/storetest"
)

func secret() []byte { return bytes.Repeat([]byte{7}, 32) }

func TestStore(t *testing.T) {
	storetest.Run(t, func(tb testing.TB, location string, now func() time.Time) store.Store {
		tb.Helper()
		s, err := sqlstore.Open(tb.Context(), sqlstore.Options{
			Path: filepath.Join(location, "as", "authz.db"), Secret: secret(), Migrate: true, Now: now,
		})
		if err != nil {
			tb.Fatal(err)
		}
		return s
	})
}
