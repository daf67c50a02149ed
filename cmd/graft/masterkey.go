package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/getgraft/graft/internal/signing"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
	"github.com/getgraft/graft/server"
)

// A keyring is the master key, and what it is to the database.
type keyring struct {
	from   string            // the variable or file it stands in
	file   string            // "" where it is in a variable
	keys   *vault.MasterKeys // nil where the file is the one we make ourselves and is not there yet
	sealed int               // data keys in the database that it opens
}

// readKeyring reads the master key and opens with it what the database has sealed. Nothing is made: a key that is not
// there, or is another, where things are sealed already is an error.
func readKeyring(ctx context.Context, c server.Database, d *database) (keyring, error) {
	k := keyring{from: "GRAFT_MASTER_KEY", file: c.MasterKeyFile}
	text, missing := c.MasterKey, false
	if text == "" {
		if k.file == "" {
			k.file = filepath.Join(c.DataDir, "master.key")
		}
		k.from = k.file
		b, err := os.ReadFile(k.file)
		missing = errors.Is(err, fs.ErrNotExist) && c.MasterKeyFile == ""
		if err != nil && !missing {
			return k, fmt.Errorf("read master key: %w", err)
		}
		text = string(b)
	}
	sealed := map[string][]store.SealKey{}
	for _, purpose := range []string{server.SessionKeys, signing.SealPurpose} {
		rows, err := d.System().SealKeys(ctx, purpose)
		if err != nil {
			return k, fmt.Errorf("read what is sealed: %w", err)
		}
		sealed[purpose] = rows
		k.sealed += len(rows)
	}
	if missing && k.sealed > 0 {
		return k, otherKey(k.from, "is missing")
	}
	if missing {
		return k, nil
	}
	var err error
	if k.keys, err = vault.ParseMasterKeys(text); err != nil {
		return k, fmt.Errorf("%s: %w", k.from, err)
	}
	for purpose, rows := range sealed {
		for _, r := range rows {
			if _, err := k.keys.Unwrap(vault.Owner{Purpose: purpose, ID: r.ID.String()}, r.Wrapped); err != nil {
				return k, otherKey(k.from, "is not the key")
			}
		}
	}
	return k, nil
}

func otherKey(from, what string) error {
	return fmt.Errorf("%s %s, and this database has things sealed under another key. Put that key back from the backup", from, what)
}

// masterKeys reads the master key, for a gateway. Beside a private database it is made on the first start, in a file
// that only its owner reads.
func masterKeys(ctx context.Context, c server.Database, d *database) (*vault.MasterKeys, error) {
	k, err := readKeyring(ctx, c, d)
	if err != nil || k.keys != nil {
		return k.keys, err
	}
	if err := makeKeyFile(k.file); err != nil {
		return nil, fmt.Errorf("make master key: %w", err)
	}
	k, err = readKeyring(ctx, c, d)
	return k.keys, err
}

// makeKeyFile writes a new key unless the file is there. It is written beside and linked, so that a crash leaves no
// half key and of two processes one wins.
func makeKeyFile(file string) error {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".master-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.WriteString(vault.GenerateMasterKey() + "\n")
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), file); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
