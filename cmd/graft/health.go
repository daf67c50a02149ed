package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/getgraft/graft/server"
)

type healthCmd struct {
	JSON   bool   `help:"Print JSON."`
	Listen string `env:"GRAFT_LISTEN" default:"127.0.0.1:8080" help:"Address the gateway listens on."`
}

// Run asks /healthz on this machine.
func (c *healthCmd) Run(ctx context.Context, p *program) error {
	err := alive(ctx, c.Listen)
	if c.JSON {
		var wrong server.Wrong
		if errors.As(err, &wrong) {
			return err
		}
		return errors.Join(p.print(map[string]any{"ok": err == nil}), err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, "ok")
	return err
}

// alive reports whether a gateway answers where one listens on listen.
func alive(ctx context.Context, listen string) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		var wrong server.Wrong
		wrong.Add("GRAFT_LISTEN", "must be host:port, not %q", listen)
		return wrong
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{}} // no proxy: this machine
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("nothing answers at %s", net.JoinHostPort(host, port))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", net.JoinHostPort(host, port), resp.Status)
	}
	return nil
}
