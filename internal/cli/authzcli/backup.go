package authzcli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/private"
)

// eventBackup is the audit event of a copy made of the store.
const eventBackup = "store_backed_up"

// The names of the files of a backup, which are the defaults of store.path and store.secret_file.
const (
	backupDatabase = "authz.db"
	backupSecret   = "authz.secret"
)

// backedUp is what is shown of a backup.
type backedUp struct {
	Database   string `json:"database"`
	SecretFile string `json:"secret_file,omitempty"`
	Bytes      int64  `json:"bytes"`
}

type backupOptions struct {
	place  place
	secret bool
	json   bool
}

func backupCommand(env cli.Env) *cobra.Command {
	o := &backupOptions{}
	c := &cobra.Command{
		Use: "backup DIR", Short: "Copy the store while the server runs", Args: cobra.ExactArgs(1),
		Long: "Copy the store to DIR/" + backupDatabase + ": accounts, clients, grants, sealed signing keys, revocations and the audit trail, as they\n" +
			"are at one instant. The server may run and write meanwhile. DIR is made when it is missing, must be closed to other users, and\n" +
			"no file in it is replaced.\n\n" +
			"The copy is of no use without the secret file (store.secret_file): keep one apart from the other, or copy it too with --with-secret;\n" +
			"who has both has the signing keys. To restore, stop the server, put the copy where store.path points, remove the files beside it\n" +
			"whose names go on with -wal and -shm, see that it belongs to the server's user, and start the server. What was revoked, disabled\n" +
			"or deleted after the copy was made is in force again then: do it anew.",
		Example: "  authz backup --config authz.yaml /var/backups/authz/2026-03-01",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "" {
				return cli.Usagef("DIR is empty: is a variable unset?")
			}
			return o.place.with(c.Context(), env, func(d *desk) error { return o.run(c.Context(), env, d, args[0]) })
		},
	}
	o.place.flags(c)
	c.Flags().BoolVar(&o.secret, "with-secret", false, "copy the secret file to DIR/"+backupSecret+" too")
	cli.JSONFlag(c, &o.json, "an object with", backedUp{})
	return c
}

func (o *backupOptions) run(ctx context.Context, env cli.Env, d *desk, dir string) error {
	b, err := o.copy(ctx, d, dir)
	if errors.Is(err, fs.ErrExist) {
		return &cli.Error{Code: cli.ExitUsage, Err: err, Hint: "a backup replaces nothing: name another folder"}
	}
	if err != nil {
		return err
	}
	record := store.AuditRecord{At: time.Now(), Event: eventBackup, Details: map[string]string{"database": b.Database, "secret_file": b.SecretFile}}
	if err := d.audit(ctx, record); err != nil {
		return err
	}
	if o.json {
		return cli.PrintJSON(env.Stdout, b)
	}
	for _, path := range []string{b.Database, b.SecretFile} {
		if path == "" {
			continue
		}
		if _, err := fmt.Fprintln(env.Stdout, path); err != nil {
			return err
		}
	}
	return nil
}

// copy makes the copy, or nothing.
func (o *backupOptions) copy(ctx context.Context, d *desk, dir string) (b backedUp, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return b, err
	}
	if err := private.EnsureFolder(dir); err != nil {
		return b, fmt.Errorf("make backup: %w", err)
	}
	var files newFiles
	defer func() {
		if err != nil {
			files.remove()
		}
	}()
	b.Database = filepath.Join(dir, backupDatabase)
	if o.secret {
		secret, err := os.ReadFile(string(d.conf.Store.SecretFile)) // opening the store has checked it
		if err != nil {
			return b, fmt.Errorf("copy secret file: %w", err)
		}
		if b.SecretFile, err = files.write(filepath.Join(dir, backupSecret), secret); err != nil {
			return b, fmt.Errorf("copy secret file: %w", err)
		}
	}
	if err := d.core.Store.Backup(ctx, b.Database); err != nil {
		return b, fmt.Errorf("copy store: %w", err)
	}
	info, err := os.Stat(b.Database)
	if err != nil {
		return b, fmt.Errorf("copy store: %w", err)
	}
	b.Bytes = info.Size()
	files.keep()
	return b, nil
}
