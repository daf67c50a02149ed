package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/getgraft/graft/internal/embedpg"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/migrations"
	"github.com/getgraft/graft/server"
)

// A database is an open database, and the private cluster behind it where this process runs one.
type database struct {
	*store.DB
	url     string
	cluster *embedpg.Cluster // nil on a real server, and where another process runs the cluster
	urlFile string           // what tells other commands where the cluster listens; "" unless we run it
}

// An opening says what a command may do to the house it opens.
type opening struct {
	founds   bool // make a private one where there is none
	migrates bool // bring the schema of a private one up to date, rather than take it as it is
}

// openDatabase opens what c names, and starts it where it is private.
func openDatabase(ctx context.Context, c server.Database, log *slog.Logger, o opening) (*database, error) {
	d := &database{url: c.DatabaseURL}
	if c.DatabaseURL == "" {
		if err := d.startPrivate(ctx, c, log, o); err != nil {
			return nil, err
		}
	}
	return d, d.open(ctx, c)
}

// joinDatabase opens what c names, also while a serve holds the private cluster: then it joins that one.
func joinDatabase(ctx context.Context, c server.Database, log *slog.Logger, o opening) (*database, error) {
	d, err := openDatabase(ctx, c, log, o)
	var held *embedpg.HeldError
	if !errors.As(err, &held) {
		return d, err
	}
	url, readErr := os.ReadFile(urlPath(c.DataDir))
	if readErr != nil {
		return nil, fmt.Errorf("graft is still starting on %s%s; try again in a moment", held.Dir, process(held))
	}
	d = &database{url: strings.TrimSpace(string(url))}
	return d, d.open(ctx, c)
}

func (d *database) open(ctx context.Context, c server.Database) error {
	db, err := store.Open(ctx, store.Config{URL: d.url, MaxConns: c.DatabaseConns})
	if err != nil {
		return errors.Join(err, d.Close(context.WithoutCancel(ctx)))
	}
	d.DB = db
	return nil
}

func (d *database) startPrivate(ctx context.Context, c server.Database, log *slog.Logger, o opening) error {
	if !o.founds {
		if err := atHome(c.DataDir); err != nil {
			return err
		}
	}
	cluster, err := embedpg.Start(ctx, embedpg.Config{DataDir: c.DataDir, BinDir: c.PGBin, Log: log})
	if err != nil {
		return err
	}
	d.cluster, d.url, d.urlFile = cluster, cluster.URL(""), urlPath(c.DataDir)
	if o.migrates {
		err = migrations.Up(ctx, d.url, log)
	}
	if err == nil {
		err = writePrivate(d.urlFile, d.url+"\n")
	}
	if err != nil {
		return errors.Join(err, d.Close(context.WithoutCancel(ctx)))
	}
	return nil
}

// writePrivate replaces file by one of mode 0600, whole at once: not what a link of that name points to, and not the mode
// of one that was there.
func writePrivate(file, text string) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // fails once it is renamed
	_, err = tmp.WriteString(text)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}

// errNoHouse is atHome's.
type errNoHouse struct{ dir string }

func (e errNoHouse) Error() string {
	return fmt.Sprintf("there is no Graft in %s. Run this where graft serve runs, or set GRAFT_DATA_DIR", e.dir)
}

// atHome is an error where dataDir holds no cluster and nobody is making one.
func atHome(dataDir string) error {
	state, err := embedpg.Look(dataDir)
	if err == nil && !state.Made && state.Held == nil {
		err = errNoHouse{dataDir}
	}
	return err
}

// current is an error where the schema is older than this binary needs.
func (d *database) current(ctx context.Context) error {
	have, err := d.System().SchemaVersion(ctx)
	if err == nil && have < migrations.Latest() {
		err = fmt.Errorf("the database schema is at %d and %d is needed: run graft migrate", have, migrations.Latest())
	}
	return err
}

func urlPath(dataDir string) string { return filepath.Join(dataDir, "database.url") }

// Close closes the pool and stops the cluster, if it is ours.
func (d *database) Close(ctx context.Context) error {
	if d.DB != nil {
		d.DB.Close()
	}
	if d.cluster == nil {
		return nil
	}
	_ = os.Remove(d.urlFile)
	if err := d.cluster.Stop(ctx); err != nil {
		return fmt.Errorf("stop private Postgres: %w", err)
	}
	return nil
}

// with opens the database for one command.
func (p *program) with(ctx context.Context, c server.Database, o opening, act func(*database) error) error {
	if err := check(c, c.Check()); err != nil {
		return err
	}
	d, err := joinDatabase(ctx, c, p.quiet(), o)
	if err != nil {
		return err
	}
	if err = d.current(ctx); err == nil {
		err = act(d)
	}
	return errors.Join(err, d.Close(context.WithoutCancel(ctx)))
}
