package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"

	"github.com/alecthomas/kong"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
	"github.com/getgraft/graft/server"
)

// check adds to what Check found in the values themselves what is wrong with c on this machine. The error is a
// server.Wrong.
func check(c server.Database, found ...error) error {
	var wrong server.Wrong
	for _, err := range found {
		var some server.Wrong
		_ = errors.As(err, &some) // Check has no other error
		wrong = append(wrong, some...)
	}
	for _, u := range []struct{ name, url string }{{"GRAFT_DATABASE_URL", c.DatabaseURL}, {"GRAFT_DATABASE_URL_DIRECT", c.DirectURL}} {
		if u.url == "" {
			continue
		}
		if err := store.CheckURL(u.url); err != nil {
			wrong.Add(u.name, "%v", err)
		}
	}
	if c.PGBin != "" {
		for _, program := range []string{"initdb", "postgres"} {
			if _, err := exec.LookPath(filepath.Join(c.PGBin, program)); err != nil {
				wrong.Add("GRAFT_PG_BIN", "must be the folder of initdb and postgres; %s has no %s that runs", c.PGBin, program)
				break
			}
		}
	}
	if c.MasterKey != "" {
		if _, err := vault.ParseMasterKeys(c.MasterKey); err != nil {
			wrong.Add("GRAFT_MASTER_KEY", "is no key (%v); make one with: graft key new", err)
		}
	}
	if c.MasterKeyFile != "" {
		if err := checkKeyFile(c.MasterKeyFile); err != nil {
			wrong.Add("GRAFT_MASTER_KEY_FILE", "names no file with a key (%v); make one with: graft key new", err)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return wrong
}

func checkKeyFile(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if _, err = vault.ParseMasterKeys(string(text)); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// number reads a number, and one that is none as -1, which Check names beside all else that is wrong. Kong itself
// would end with the first.
var number = kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("number", &text); err != nil {
		return err
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		n = -1
	}
	target.SetInt(n)
	return nil
})
