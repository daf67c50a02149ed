package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/getgraft/graft/internal/embedpg"
	"github.com/getgraft/graft/migrations"
	"github.com/getgraft/graft/server"
)

type doctorCmd struct {
	JSON bool `help:"Print JSON."`

	server.Config `group:"Settings of the deployment:"`
}

// A finding is the outcome of one check: what was found, and how to mend it where it is wrong.
type finding struct {
	Check    string `json:"check"`
	OK       bool   `json:"ok"`
	NotAsked bool   `json:"notAsked,omitempty"` // it could not be asked, and Found says why; no fault of its own
	Found    string `json:"found"`
	Mend     string `json:"mend,omitempty"`
}

func good(format string, args ...any) finding {
	return finding{OK: true, Found: fmt.Sprintf(format, args...)}
}

func bad(mend, format string, args ...any) finding {
	return finding{Found: fmt.Sprintf(format, args...), Mend: mend}
}

func notAsked(format string, args ...any) finding {
	return finding{NotAsked: true, Found: "not asked: " + fmt.Sprintf(format, args...)}
}

// checks are in their order. Every run reports all of them.
var checks = []string{
	"settings", "address", "data folder", "postgres binaries", "single sign-on", "database", "clock", "roles", "schema", "tenancy", "master key",
}

// An examination is the findings so far.
type examination []finding

// find reports the next check.
func (x *examination) find(f finding) {
	f.Check = checks[len(*x)]
	f.Found = strings.ReplaceAll(f.Found, "\n", "; ") // a line each
	*x = append(*x, f)
}

// rest reports that no further check could be asked.
func (x *examination) rest(format string, args ...any) {
	for len(*x) < len(checks) {
		x.find(notAsked(format, args...))
	}
}

// Run makes every check, also after one failed, and ends with 1 if any did. It leaves the deployment as it was.
func (c *doctorCmd) Run(ctx context.Context, p *program) error {
	var x examination
	x.find(c.settings())
	house, looked := c.look()
	x.find(c.address(ctx, house))
	x.find(c.dataFolder(house, looked))
	x.find(c.binaries())
	x.find(c.signOn(ctx))
	switch {
	case check(c.Database, c.Database.Check()) != nil:
		x.rest("the settings are wrong")
	case looked != nil:
		x.rest("the data folder cannot be used")
	case c.DatabaseURL == "" && !house.Made && house.Held != nil:
		x.rest("graft is still starting%s", process(house.Held))
	case c.DatabaseURL == "" && !house.Made:
		x.rest("there is no Graft in %s yet", c.DataDir)
	case c.DatabaseURL == "" && house.Held == nil && !c.hasBinaries():
		x.rest("there is no Postgres to start it with")
	default:
		c.askDatabase(ctx, p, &x, house.Held != nil)
	}
	return p.report(x, c.JSON)
}

// look looks at the private database's folder, where there is one.
func (c *doctorCmd) look() (embedpg.State, error) {
	if c.DatabaseURL != "" {
		return embedpg.State{}, nil
	}
	return embedpg.Look(c.DataDir)
}

func (p *program) report(list []finding, asJSON bool) error {
	failed, unasked := 0, 0
	for _, f := range list {
		switch {
		case f.NotAsked:
			unasked++
		case !f.OK:
			failed++
		}
	}
	if asJSON {
		if err := p.print(list); err != nil {
			return err
		}
	} else {
		for _, f := range list {
			mark := "ok  "
			switch {
			case f.NotAsked:
				mark = "--  "
			case !f.OK:
				mark = "FAIL"
			}
			_, _ = fmt.Fprintf(p.stdout, "%s  %-18s %s\n", mark, f.Check, f.Found)
			if f.Mend != "" {
				_, _ = fmt.Fprintf(p.stdout, "      %-18s %s\n", "", f.Mend)
			}
		}
		_, _ = fmt.Fprintf(p.stdout, "%d checks, %d failed", len(list), failed)
		if unasked > 0 {
			_, _ = fmt.Fprintf(p.stdout, ", %d not asked", unasked)
		}
		_, _ = fmt.Fprintln(p.stdout)
	}
	if failed > 0 {
		return errSilent
	}
	return nil
}

func (c *doctorCmd) settings() finding {
	if err := check(c.Database, c.Check()); err != nil {
		return bad("Mend the variables named.", "%v", err)
	}
	return good("every variable can be read")
}

// address says whether the gateway answers, or could.
func (c *doctorCmd) address(ctx context.Context, house embedpg.State) finding {
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return notAsked("GRAFT_LISTEN is wrong")
	}
	private := c.DatabaseURL == ""
	if alive(ctx, c.Listen) == nil {
		if private && house.Held == nil {
			return bad("Set GRAFT_DATA_DIR to the folder it runs on, or GRAFT_LISTEN to another address.",
				"a gateway answers on %s, but not from this data folder", c.Listen)
		}
		return good("a gateway answers on %s", c.Listen)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	switch {
	case err == nil:
		_ = l.Close()
		return good("%s is free; no gateway runs there", c.Listen)
	case !errors.Is(err, syscall.EADDRINUSE):
		return bad("Set GRAFT_LISTEN to an address of this machine.", "%s cannot be listened on: %v", c.Listen, err)
	case private && house.Held != nil:
		return bad("If it is not just starting, look at its log.", "%s is taken, and no gateway answers there yet", c.Listen)
	}
	return bad("Stop what listens there, or set GRAFT_LISTEN to another port.", "%s is taken by something that is not graft", c.Listen)
}

// dataFolder looks at who can read the folder and the master key in it.
func (c *doctorCmd) dataFolder(house embedpg.State, looked error) finding {
	if c.DatabaseURL != "" {
		return good("not used: GRAFT_DATABASE_URL is set")
	}
	info, err := os.Stat(c.DataDir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return good("%s is not there yet; the first start makes it", c.DataDir)
	case err != nil:
		return bad("Let this user read the folder.", "%v", err)
	case looked != nil:
		return bad("Put the folder in order; graft serve stops on the same.", "%v", looked)
	}
	if m := info.Mode().Perm(); m&0o077 != 0 {
		return bad("Run: chmod 0700 "+c.DataDir, "%s has mode %04o: others can look into it", c.DataDir, m)
	}
	if !house.Made {
		return good("%s has no Graft in it yet; the first start makes one", c.DataDir)
	}
	return good("%s, for its owner alone", c.DataDir)
}

func (c *doctorCmd) binaries() finding {
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

// signOn asks the provider where people may sign in for its metadata, as the first of them will.
func (c *doctorCmd) signOn(ctx context.Context) finding {
	if c.SignOn == (server.SignOn{}) {
		return good("not used: GRAFT_OIDC_ISSUER is not set")
	}
	if err := c.SignOn.Check(); err != nil {
		return notAsked("the settings are wrong")
	}
	provider, err := c.Provider(c.Public(), time.Now)
	if err != nil {
		return bad("", "%v", err)
	}
	defer provider.Close()
	if err := provider.Check(ctx); err != nil {
		return bad("Look at GRAFT_OIDC_ISSUER and whether the provider runs. Until then nobody signs in with it; graft serve tries again by itself.", "%v", err)
	}
	return good("%s answers; it must know %s", c.OIDCIssuer, c.Public()+server.SignOnPath)
}

func (c *doctorCmd) hasBinaries() bool {
	_, err := embedpg.FindBinaries(c.PGBin)
	return err == nil
}

// askDatabase makes the checks that need the database. served is whether a process has the private one open.
func (c *doctorCmd) askDatabase(ctx context.Context, p *program, x *examination, served bool) {
	private := c.DatabaseURL == ""
	db, err := joinDatabase(ctx, c.Database, p.quiet(), opening{})
	if err != nil {
		mend := "Start it, or mend GRAFT_DATABASE_URL."
		if private {
			mend = "Mend what it names; graft serve stops on the same."
		}
		x.find(bad(mend, "%s", words(err)))
		x.rest("the database does not answer")
		return
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()
	d, err := db.Diagnose(ctx)
	if err != nil {
		x.find(bad("Look at the database's log.", "%s", words(err)))
		x.rest("the database does not answer")
		return
	}
	if d.Version < 150000 {
		x.find(bad("Use Postgres 15 or newer.", "Postgres %d.%d is too old", d.Version/10000, d.Version%10000))
	} else {
		x.find(good("Postgres %d.%d answers", d.Version/10000, d.Version%10000))
	}
	x.find(clock(d.Now))
	have, err := db.System().SchemaVersion(ctx)
	older := err == nil && have < migrations.Latest()
	switch {
	case len(d.Missing) == 0:
		x.find(good("login %s is a member of the three", d.Login))
	case private && older:
		x.find(notAsked("the schema is older"))
	default:
		x.find(bad("Run: graft migrate", "login %s is not a member of %s", d.Login, strings.Join(d.Missing, ", ")))
	}
	switch {
	case err != nil:
		x.find(bad("Run: graft migrate", "the schema cannot be read: %v", err))
		x.rest("the schema cannot be read")
		return
	case older && private && !served:
		x.find(good("at %d; the next graft serve brings it to %d", have, migrations.Latest()))
	case older:
		x.find(bad("Run: graft migrate", "at %d, and this version needs %d", have, migrations.Latest()))
	case have > migrations.Latest():
		x.find(good("at %d, newer than this version's %d; both run on it", have, migrations.Latest()))
	default:
		x.find(good("at %d", have))
	}
	if older {
		x.rest("the schema is older")
		return
	}
	x.find(tenancy(ctx, db, d.Superuser))
	x.find(c.masterKey(ctx, db))
}

func clock(database time.Time) finding {
	off := time.Since(database).Abs()
	if off > 5*time.Second {
		return bad("Run a time service on both machines.", "this machine and the database differ by %s", off.Round(time.Second))
	}
	return good("within %s of the database's", (off + time.Millisecond).Round(time.Millisecond))
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
