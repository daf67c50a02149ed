package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/getgraft/graft/internal/embedpg"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
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

// openDatabase opens what c names. A private cluster is started and its schema brought up to date. A real server's
// schema is left to graft migrate.
func openDatabase(ctx context.Context, c server.Database, log *slog.Logger) (*database, error) {
	d := &database{url: c.DatabaseURL}
	if c.DatabaseURL == "" {
		if err := d.startPrivate(ctx, c, log); err != nil {
			return nil, err
		}
	}
	return d, d.open(ctx, c)
}

// joinDatabase opens what c names, also while a serve holds the private cluster: then it joins that one.
func joinDatabase(ctx context.Context, c server.Database, log *slog.Logger) (*database, error) {
	d, err := openDatabase(ctx, c, log)
	var held *embedpg.HeldError
	if !errors.As(err, &held) {
		return d, err
	}
	url, readErr := os.ReadFile(urlPath(c.DataDir))
	if readErr != nil {
		return nil, fmt.Errorf("%w; it is still starting, or is not graft serve", err)
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

func (d *database) startPrivate(ctx context.Context, c server.Database, log *slog.Logger) error {
	cluster, err := embedpg.Start(ctx, embedpg.Config{DataDir: c.DataDir, BinDir: c.PGBin, Log: log})
	if err != nil {
		return fmt.Errorf("start private Postgres: %w", err)
	}
	d.cluster, d.url, d.urlFile = cluster, cluster.URL(""), urlPath(c.DataDir)
	err = migrations.Up(ctx, d.url, log)
	if err == nil {
		err = os.WriteFile(d.urlFile, []byte(d.url+"\n"), 0o600)
	}
	if err != nil {
		return errors.Join(err, d.Close(context.WithoutCancel(ctx)))
	}
	return nil
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

// logger writes to stderr in the form asked for.
func (p *program) logger(form string) *slog.Logger {
	if form == "json" {
		return slog.New(slog.NewJSONHandler(p.stderr, nil))
	}
	return slog.New(slog.NewTextHandler(p.stderr, nil))
}

// quiet logs only what is wrong: commands other than serve speak for themselves.
func (p *program) quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// with opens the database for one command.
func (p *program) with(ctx context.Context, c server.Database, act func(*database) error) error {
	if err := check(c, c.Check()); err != nil {
		return err
	}
	d, err := joinDatabase(ctx, c, p.quiet())
	if err != nil {
		return err
	}
	return errors.Join(act(d), d.Close(context.WithoutCancel(ctx)))
}
