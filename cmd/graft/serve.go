package main

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sync/errgroup"

	"github.com/getgraft/graft/server"
)

type serveCmd struct{ server.Config }

// Run serves until it is told to stop, and stops the private Postgres last.
func (c *serveCmd) Run(ctx context.Context, p *program) (err error) {
	if err := check(c.Database, c.Check()); err != nil {
		return err
	}
	log := p.logger(c.Log)
	db, err := openDatabase(ctx, c.Database, log, opening{founds: true, migrates: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(context.WithoutCancel(ctx))) }()
	if err := db.current(ctx); err != nil {
		return err
	}
	keys, err := masterKeys(ctx, c.Database, db)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen on GRAFT_LISTEN: %w", err)
	}
	defer func() { _ = listener.Close() }()
	var metrics net.Listener
	if c.MetricsListen != "" {
		if metrics, err = (&net.ListenConfig{}).Listen(ctx, "tcp", c.MetricsListen); err != nil {
			return fmt.Errorf("listen on GRAFT_METRICS_LISTEN: %w", err)
		}
		defer func() { _ = metrics.Close() }()
	}
	c.Listen = listener.Addr().String() // the port, where :0 was asked for
	c.Origin = c.Public()
	s, err := server.New(ctx, c.Config, server.Deps{DB: db.DB, Master: keys, Log: log, Version: p.version})
	if err != nil {
		return err
	}
	if err := c.announce(ctx, p, db); err != nil {
		return err
	}
	run, ctx := errgroup.WithContext(ctx)
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
