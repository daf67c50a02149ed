package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

type mcpListCmd struct{ reach }

// Run lists the live upstreams.
func (c *mcpListCmd) Run(ctx context.Context, p *program) error {
	return c.with(ctx, p, func(h house) error {
		list, err := h.list(ctx, "")
		if err != nil {
			return err
		}
		if !c.JSON {
			return p.table(list)
		}
		servers := make([]map[string]any, len(list))
		for i, u := range list {
			servers[i] = describe(u)
		}
		return p.print(map[string]any{"servers": servers, "count": len(servers)})
	})
}

type mcpTestCmd struct {
	Name string `arg:"" help:"Name of the upstream."`
	reach
}

// Run connects to an upstream, lists it anew, and counts.
func (c *mcpTestCmd) Run(ctx context.Context, p *program) error {
	return c.with(ctx, p, func(h house) error {
		list, err := h.list(ctx, c.Name)
		if err != nil {
			return err
		}
		began := time.Now()
		failed := h.upstreams.Refresh(ctx, h.caller, list[0].ID)
		took := time.Since(began)
		if failed != nil && reason.Of(failed).Word == reason.Internal {
			return failed
		}
		if list, err = h.list(ctx, c.Name); err != nil {
			return err
		}
		tools, err := h.upstreams.Tools(ctx, h.caller)
		if err != nil {
			return err
		}
		declare := 0
		for _, t := range tools {
			if t.Vendor == c.Name && t.OutputSchema != nil {
				declare++
			}
		}
		u := list[0]
		if c.JSON {
			answer := map[string]any{"server": u.Name, "ok": failed == nil, "tools": u.Tools, "declareOutputSchema": declare, "leftOut": u.LeftOut, "elapsedMs": took.Milliseconds()}
			if u.LastError != "" {
				answer["reason"], answer["error"] = u.LastErrorWord, u.LastError
			}
			if err := p.print(answer); err != nil || failed == nil {
				return err
			}
			return errSilent
		}
		if failed != nil {
			return failed
		}
		_, err = fmt.Fprintf(p.stdout, "%s answers. It has %s; %d of them declare an output schema. (%d ms)\n", u.Name, count(u.Tools, "tool", "tools"), declare, took.Milliseconds())
		p.remark(u)
		return err
	})
}

type mcpToolsCmd struct {
	Name string `arg:"" optional:"" help:"Name of the upstream; all when absent."`
	reach
}

// Run lists the tools of upstreams as they were last listed.
func (c *mcpToolsCmd) Run(ctx context.Context, p *program) error {
	return c.with(ctx, p, func(h house) error {
		list, err := h.list(ctx, c.Name)
		if err != nil {
			return err
		}
		tools, err := h.upstreams.Tools(ctx, h.caller)
		if err != nil {
			return err
		}
		of := map[string][]catalog.Tool{}
		for _, t := range tools {
			of[t.Vendor] = append(of[t.Vendor], t)
		}
		left, err := h.leftOut(ctx, list)
		if err != nil {
			return err
		}
		if c.JSON {
			return p.print(toolsJSON(list, of, left))
		}
		for i, u := range list {
			if i > 0 {
				_, _ = fmt.Fprintln(p.stdout)
			}
			p.section(u, of[u.Name], left[u.Name])
		}
		return nil
	})
}

// leftOut is what is listed and not offered, by the name of its upstream.
func (h house) leftOut(ctx context.Context, list []store.Upstream) (map[string][]store.UpstreamTool, error) {
	left := map[string][]store.UpstreamTool{}
	err := h.db.As(ctx, h.caller, func(tx *store.Tx) error {
		for _, u := range list {
			if u.LeftOut == 0 {
				continue
			}
			rows, err := tx.UpstreamTools(ctx, u.ID)
			if err != nil {
				return err
			}
			left[u.Name] = nil
			for _, row := range rows {
				if row.GoneAt == nil && row.LeftOut != "" {
					left[u.Name] = append(left[u.Name], row)
				}
			}
		}
		return nil
	})
	return left, err
}

// section prints one upstream's tools.
func (p *program) section(u store.Upstream, tools []catalog.Tool, left []store.UpstreamTool) {
	stale := ""
	if u.State == store.UpstreamFailing {
		stale = ", as they were last known"
	}
	_, _ = fmt.Fprintf(p.stdout, "%s (%s%s)\n", u.Name, count(len(tools), "tool", "tools"), stale)
	for _, t := range tools {
		mark := ""
		if t.ReadOnly {
			mark = " [read-only]"
		}
		_, _ = fmt.Fprintln(p.stdout, strings.TrimRight(fmt.Sprintf("  %s%s  %s", t.Wire(), mark, firstLine(t.Description)), " "))
	}
	for _, t := range left {
		_, _ = fmt.Fprintf(p.stdout, "  %q is left out: %s\n", t.Original, t.LeftOut)
	}
}

func toolsJSON(list []store.Upstream, of map[string][]catalog.Tool, left map[string][]store.UpstreamTool) map[string]any {
	tools, out := []map[string]any{}, []map[string]any{}
	for _, u := range list {
		for _, t := range of[u.Name] {
			tools = append(tools, map[string]any{
				"name": t.Wire(), "source": u.Name, "original": t.Original, "title": t.Title, "description": t.Description, "version": t.Version,
				"readOnly": t.ReadOnly, "destructive": t.Destructive, "idempotent": t.Idempotent, "stale": t.Stale, "inputSchema": t.InputSchema, "outputSchema": t.OutputSchema,
			})
		}
		for _, t := range left[u.Name] {
			out = append(out, map[string]any{"source": u.Name, "original": t.Original, "why": t.LeftOut})
		}
	}
	return map[string]any{"tools": tools, "count": len(tools), "leftOut": out}
}

// firstLine is the beginning of a description, at most 100 characters.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if r := []rune(line); len(r) > 100 {
		line = string(r[:99]) + "…"
	}
	return strings.TrimSpace(line)
}
