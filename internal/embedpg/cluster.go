package embedpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	superuser = "graft"
	database  = "graft"
	port      = "5432" // names the socket file; nothing listens on it
)

// Config says where the cluster lives and which binaries run it.
type Config struct {
	// DataDir is the gateway's data folder, made with mode 0700 if missing. The cluster lives in DataDir/pg or, as root where
	// that is closed to the uid Postgres runs as, in /var/lib/graft, and DataDir/pg.path says where.
	DataDir string

	// BinDir holds initdb and postgres; empty searches for them, see FindBinaries.
	BinDir string

	// CacheDir keeps fetched binaries; empty is /var/cache/graft as root, graft in the user's cache folder otherwise.
	CacheDir string

	// Throwaway is for tests: the data does not survive a power cut, 300 connections are allowed, and a cluster that cannot
	// live in DataDir is made in /tmp and removed when it stops.
	Throwaway bool

	// Log takes Postgres's own lines, at debug, its warnings at warn; nil drops them.
	Log *slog.Logger
}

// Cluster is a running Postgres.
type Cluster struct {
	postmaster *postmaster
	sockets    string
	stopping   atomic.Bool
	done       chan struct{}
	err        error // set before done closes
}

// Start finds or fetches binaries, makes the cluster if there is none, starts it and waits until it answers. ctx is for the
// start only. The error is a *HeldError where another process holds the folder.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	h, err := openHome(cfg.DataDir, cfg.Throwaway)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	if h.outside {
		cfg.Log.InfoContext(ctx, "the data folder is closed to the user that Postgres runs as; the cluster is outside", slog.String("cluster", h.dir))
	}
	c, err := startIn(ctx, h, cfg)
	if err != nil {
		h.close()
		return nil, fmt.Errorf("start postgres in %s: %w", h.dir, err)
	}
	return c, nil
}

func startIn(ctx context.Context, h *home, cfg Config) (*Cluster, error) {
	major, err := h.major()
	if err != nil {
		return nil, err
	}
	bin, err := locate(ctx, cfg, h.owner, major)
	if err != nil {
		return nil, err
	}
	if major == 0 {
		err = initdb(ctx, h, bin, cfg)
	} else {
		err = endOrphan(ctx, h, cfg.Log)
	}
	if err != nil {
		return nil, err
	}
	c := &Cluster{sockets: h.sockets, done: make(chan struct{})}
	if c.postmaster, err = c.launch(ctx, h, bin, cfg); err != nil {
		return nil, err
	}
	go c.watch(h)
	return c, nil
}

// launch starts postgres and waits until the database answers. Backends that outlive a killed postmaster keep its shared
// memory until their query ends, and postgres refuses to start for as long: it is tried again for half a minute.
func (c *Cluster) launch(ctx context.Context, h *home, bin binaries, cfg Config) (*postmaster, error) {
	giveUp := time.Now().Add(30 * time.Second)
	for {
		p, err := runPostmaster(ctx, h, bin, cfg)
		if err != nil {
			return nil, err
		}
		if err = c.ready(ctx, p); err == nil {
			return p, nil
		}
		p.abandon(ctx)
		if !errors.Is(err, errLingering) || time.Now().After(giveUp) {
			return nil, err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// ready waits until p, and not another that has the folder, answers and makes the database graft if it is not there.
func (c *Cluster) ready(ctx context.Context, p *postmaster) error {
	cfg, err := pgx.ParseConfig(c.URL("postgres"))
	if err != nil {
		return fmt.Errorf("parse own address: %w", err)
	}
	for {
		err := makeDatabase(ctx, cfg, p.cmd.Process.Pid)
		if err == nil {
			return nil
		}
		refused := new(pgconn.PgError)
		if errors.As(err, &refused) && refused.Code != "57P03" || errors.Is(err, fs.ErrPermission) { // cannot_connect_now: starting up
			return err
		}
		select {
		case <-p.exited:
			return p.failure()
		default:
		}
		if ended := pause(ctx, 10*time.Millisecond); ended != nil {
			return fmt.Errorf("wait for an answer: %w, the last try: %w", ended, err)
		}
	}
}

func makeDatabase(ctx context.Context, cfg *pgx.ConnConfig, pid int) error {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	var answers int
	var there bool
	err = conn.QueryRow(ctx, `SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)::int,
		EXISTS (SELECT FROM pg_database WHERE datname = $1)`, database).Scan(&answers, &there)
	switch {
	case err != nil:
		return fmt.Errorf("look for database %s: %w", database, err)
	case answers != pid:
		return fmt.Errorf("process %d answers, not ours, %d", answers, pid)
	case there:
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+database); err != nil {
		return fmt.Errorf("create database %s: %w", database, err)
	}
	return nil
}

// watch waits for the end of postgres, frees the folder and closes Done.
func (c *Cluster) watch(h *home) {
	<-c.postmaster.exited
	switch p := c.postmaster; {
	case p.hurried.Load():
		c.err = fmt.Errorf("postgres did not shut down in time and was ended at once: %w", context.DeadlineExceeded)
	case !c.stopping.Load() || p.err != nil:
		c.err = p.failure()
	}
	h.close()
	close(c.done)
}

// URL is the address of a database as the superuser graft, over the unix socket; "" is the database graft, which Start made.
func (c *Cluster) URL(name string) string {
	if name == "" {
		name = database
	}
	query := url.Values{"host": {c.sockets}, "port": {port}, "user": {superuser}, "sslmode": {"disable"}}
	return (&url.URL{Scheme: "postgres", Path: "/" + name, RawQuery: query.Encode()}).String()
}

// Done is closed when postgres has exited, by Stop or by itself, and the folder is free again.
func (c *Cluster) Done() <-chan struct{} { return c.done }

// Err says, after Done, why postgres exited; nil after a clean Stop.
func (c *Cluster) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Stop shuts down fast (open transactions roll back) and waits. If ctx ends first postgres is ended at once and recovers from
// its log at the next start. Stop may be called again, and after a crash, and answers what Err does.
func (c *Cluster) Stop(ctx context.Context) error {
	c.stopping.Store(true)
	c.postmaster.stop(ctx)
	<-c.done
	return c.err
}

// pause waits for d or, with the cause as its error, for the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
