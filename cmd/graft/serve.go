package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"strconv"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/getgraft/graft/internal/embedpg"
	"github.com/getgraft/graft/server"
)

type serveCmd struct {
	server.Config
}

// Run serves until it is told to stop, and stops the private Postgres last.
func (c *serveCmd) Run(ctx context.Context, p *program) (err error) {
	if err := check(c.Database, c.Check()); err != nil {
		return err
	}
	log, written := p.busyLogger(c.Log)
	defer written()
	collectLess()
	// Before the database, whose start takes seconds: a taken port is told at once.
	listener, err := c.listen(ctx, "GRAFT_LISTEN", c.Listen)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	var metrics net.Listener
	if c.MetricsListen != "" {
		if metrics, err = c.listen(ctx, "GRAFT_METRICS_LISTEN", c.MetricsListen); err != nil {
			return err
		}
		defer func() { _ = metrics.Close() }()
	}
	db, err := openDatabase(ctx, c.Database, log, opening{founds: true, migrates: true})
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, db.Close(context.WithoutCancel(ctx))); err == nil {
			log.Info("stopped")
		}
	}()
	if err := db.current(ctx); err != nil {
		return err
	}
	keys, err := masterKeys(ctx, c.Database, db)
	if err != nil {
		return err
	}
	c.Listen = listener.Addr().String() // the port, where :0 was asked for
	c.Origin = c.Public()
	s, err := server.New(ctx, c.Config, server.Deps{DB: db.DB, DirectURL: cmp.Or(c.DirectURL, db.url), Master: keys, Log: log, Version: p.version})
	if err != nil {
		return err
	}
	if err := c.announce(ctx, p, db); err != nil {
		return err
	}
	run, ctx := errgroup.WithContext(ctx)
	run.Go(func() error {
		<-ctx.Done()
		log.Info("stopping")
		return nil
	})
	run.Go(func() error { return s.Serve(ctx, listener, metrics) })
	if db.cluster != nil {
		// Without its database the gateway could only refuse: it ends, and whoever started it starts both again.
		run.Go(func() error {
			select {
			case <-db.cluster.Done():
				return fmt.Errorf("private Postgres ended: %w", db.cluster.Err())
			case <-ctx.Done():
				return nil
			}
		})
	}
	return run.Wait()
}

// collectLess lets the heap grow to three times what is live, instead of twice, before it is collected: little of a
// gateway's heap outlives a call, and collecting it took some 7 % of the CPU. An operator's own GOGC stands.
func collectLess() {
	if was := debug.SetGCPercent(200); was != 100 {
		debug.SetGCPercent(was)
	}
}

// listen takes an address that the variable called name asks for.
func (c *serveCmd) listen(ctx context.Context, name, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if !errors.Is(err, syscall.EADDRINUSE) {
		if err != nil {
			err = fmt.Errorf("listen on %s: %w", name, err)
		}
		return l, err
	}
	// Who starts it twice is told that, and not to take another port.
	if c.DatabaseURL == "" {
		if state, err := embedpg.Look(c.DataDir); err == nil && state.Held != nil {
			return nil, state.Held
		}
	}
	return nil, fmt.Errorf("%s is taken. Choose another with %s=%s", address, name, another(address))
}

// another is an address beside one that is taken.
func another(address string) string {
	host, port, _ := net.SplitHostPort(address) // it was listened on
	n, err := strconv.Atoi(port)
	if err != nil || n > 65000 {
		n = 8080
	}
	return net.JoinHostPort(host, strconv.Itoa(n+10))
}

// announce prints the one line a person needs: the link to begin with, or the address.
func (c *serveCmd) announce(ctx context.Context, p *program, db *database) error {
	known, err := db.System().AnyUser(ctx)
	if err != nil {
		return err
	}
	if known {
		_, err = fmt.Fprintf(p.stdout, "Graft is at %s\n", c.Origin)
		return err
	}
	token, err := db.System().NewWelcomeLink(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "Open this link to begin: %s/setup/%s\n", c.Origin, token)
	return err
}
