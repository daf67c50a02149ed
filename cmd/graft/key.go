package main

import (
	"fmt"

	"github.com/getgraft/graft/internal/vault"
)

type keyNewCmd struct{}

// Run prints a master key, alone on stdout.
func (*keyNewCmd) Run(p *program) error {
	_, err := fmt.Fprintln(p.stdout, vault.GenerateMasterKey())
	return err
}
