package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/getgraft/graft/internal/vault"
	"github.com/getgraft/graft/server"
)

// masterKeys reads the master key. With a private database it is made on the first start, in a file beside the data
// that only its owner reads.
func masterKeys(c server.Database) (*vault.MasterKeys, error) {
	text, file := c.MasterKey, c.MasterKeyFile
	if text == "" && file == "" {
		file = filepath.Join(c.DataDir, "master.key")
		if err := makeKeyFile(file); err != nil {
			return nil, fmt.Errorf("make master key: %w", err)
		}
	}
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read master key: %w", err)
		}
		text = string(b)
	}
	keys, err := vault.ParseMasterKeys(text)
	if err != nil {
		return nil, fmt.Errorf("master key: %w", err)
	}
	return keys, nil
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
