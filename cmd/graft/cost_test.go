package main_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// costRounds is how often one run measures everything.
const costRounds = 3

// BenchmarkCost measures what a call through the gateway costs beside what it must: straight to the upstream, through a
// proxy without features (floor), through one that looks a bearer up and reads the envelope (floor-parse), and through
// `graft serve` with all that is on by default, a read and a write. The roads take turns within each round, because the
// machine is never the same for long: read the ratios to floor-parse, not the figures.
//
// The bars at 1, 16 and 64 callers: a read at 1.6 times the CPU and 0.6 of the calls a second at least, a write at 2.5
// times, and 0.35, 0.45 and 0.6. They are reported here, never asserted.
func BenchmarkCost(b *testing.B) {
	roads := costRoads(b)
	var rounds []round
	for b.Loop() {
		for range costRounds {
			rounds = append(rounds, measureRound(b, roads))
		}
	}
	b.ReportMetric(0, "ns/op") // of a run with its rounds, which says nothing
	report(b, roads, rounds)
}

var costCallers = []int{1, 16, 64}

// A round has a sample of each road at each number of callers.
type round map[string]map[int]sample

func measureRound(b *testing.B, roads []road) round {
	b.Helper()
	r := round{}
	for _, callers := range costCallers {
		for _, road := range roads {
			s, err := road.measure(b.Context(), callers)
			if err != nil {
				b.Fatal(err)
			}
			if r[road.name] == nil {
				r[road.name] = map[int]sample{}
			}
			r[road.name][callers] = s
		}
	}
	return r
}

// costRoads starts everybody. A write waits for the disk, which is another machine's on another machine; beside it stands the
// same write on a database that does not wait.
func costRoads(b *testing.B) []road {
	b.Helper()
	upstream := startParty(b, "upstream")
	floor := startParty(b, "floor "+upstream.url)
	parse := startParty(b, "floor-parse "+upstream.url)
	private := newHome(b)
	onDisk := private.gateway(upstream.url, func() string {
		url, err := os.ReadFile(filepath.Join(private.dir, "database.url"))
		if err != nil {
			b.Fatal(err)
		}
		return strings.TrimSpace(string(url))
	})
	empty := storetest.EmptyURL(b)
	given := newHome(b)
	key := strings.TrimSpace(given.ok("key", "new"))
	noDisk := given.gateway(upstream.url, func() string { return empty }, "GRAFT_DATABASE_URL="+empty, "GRAFT_MASTER_KEY="+key)
	return []road{
		{name: "direct", url: upstream.url, tool: "read"},
		{name: "floor", url: floor.url, pid: floor.pid, tool: "read"},
		{name: "floor-parse", url: parse.url, pid: parse.pid, tool: "read", token: floorToken},
		onDisk.road("read", "echo__read"),
		onDisk.road("write", "echo__write"),
		noDisk.road("write-nowait", "echo__write"),
	}
}

// A gateway is one that serves, set up as an operator would.
type gateway struct {
	url, token string
	pid        int
}

func (g gateway) road(name, tool string) road {
	return road{name: name, url: g.url, pid: g.pid, token: g.token, tool: tool}
}

// gateway starts one whose agent may call the upstream's tools. env says which database it has, where it has no private
// one; database is its address once it serves.
func (h *home) gateway(upstream string, database func() string, env ...string) gateway {
	h.t.Helper()
	env = append(env, "GRAFT_EGRESS_ALLOW=127.0.0.0/8", "GRAFT_RATE_MCP=off")
	run := func(args ...string) string { return strings.TrimSpace(h.ok(append(slices.Clone(env), args...)...)) }
	if len(env) > 2 {
		run("migrate")
	}
	g := gateway{url: "http://" + h.listen + "/mcp", pid: h.serveQuietly(env...)}
	run("user", "add", "--email", "ana@example.com")
	g.token = run("agent", "add", "--name", "hermes")
	run("upstream", "add", "--name", "echo", "--url", upstream, "--trust-hints")
	h.allow(database(), "hermes", "echo", "write")
	return g
}

// serveQuietly starts the gateway with its log in a file, and returns its process.
func (h *home) serveQuietly(env ...string) (pid int) {
	h.t.Helper()
	log, err := os.Create(filepath.Join(h.t.TempDir(), "log"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = log.Close() })
	return h.serveTo(log, env...).cmd.Process.Pid
}

// allow sets an agent's standing answer about an upstream's tool, which people do on the page that its first call asks for.
func (h *home) allow(url, agent, upstream, tool string) {
	h.t.Helper()
	ctx := h.t.Context()
	db, err := store.Open(ctx, store.Config{URL: url})
	if err != nil {
		h.t.Fatal(err)
	}
	defer db.Close()
	org, err := db.System().OrganisationByName(ctx, "")
	if err != nil {
		h.t.Fatal(err)
	}
	err = db.As(ctx, store.Caller{Org: org.ID, Role: store.RoleOwner, Via: store.ViaCLI}, func(tx *store.Tx) error {
		return allow(ctx, tx, agent, upstream, tool)
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func allow(ctx context.Context, tx *store.Tx, agent, upstream, tool string) error {
	a, err := tx.AgentByName(ctx, agent)
	if err != nil {
		return err
	}
	u, err := tx.UpstreamByName(ctx, upstream)
	if err != nil {
		return err
	}
	tools, err := tx.UpstreamTools(ctx, u.ID)
	for _, t := range tools {
		if t.Original == tool {
			return tx.Approve(ctx, a.ID, store.Approval{Tool: u.Name + "__" + t.Name, ConnectionID: u.Connection, Version: int(t.Version), Decision: store.Allow})
		}
	}
	return fmt.Errorf("no tool %s (%w)", tool, err)
}

// report prints every figure, and makes metrics of the ratios.
func report(b *testing.B, roads []road, rounds []round) {
	b.Helper()
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 4, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "callers\troad\tcalls/s\tp50\tp99\tCPU a call\tcalls/s to floor-parse\tCPU to floor-parse\tCPU, each round\t")
	for _, callers := range costCallers {
		parse := mean(rounds, "floor-parse", callers)
		for _, road := range roads {
			s := mean(rounds, road.name, callers)
			rate, cpu := s.perSecond/parse.perSecond, float64(s.cpu)/float64(parse.cpu)
			_, _ = fmt.Fprintf(w, "%d\t%s\t%.0f\t%v\t%v\t%v\t%.2f\t%.2f\t%s\t\n", callers, road.name, s.perSecond,
				s.half.Round(10*time.Microsecond), s.most.Round(10*time.Microsecond), s.cpu.Round(time.Microsecond), rate, cpu, spread(rounds, road.name, callers))
			if road.token != "" && road.name != "floor-parse" {
				b.ReportMetric(rate, fmt.Sprintf("%s-rate/%d", road.name, callers))
				b.ReportMetric(cpu, fmt.Sprintf("%s-cpu/%d", road.name, callers))
			}
		}
	}
	_ = w.Flush()
	fmt.Printf("\n%d rounds of %d calls\n%s", len(rounds), costCalls, &out) // b.Log keeps ten lines
}

// mean is the mean of a road's samples.
func mean(rounds []round, road string, callers int) (m sample) {
	n := time.Duration(len(rounds))
	for _, r := range rounds {
		s := r[road][callers]
		m.perSecond += s.perSecond / float64(n)
		m.half += s.half / n
		m.most += s.most / n
		m.cpu += s.cpu / n
	}
	return m
}

// spread is a road's CPU to floor-parse in each round: how far to believe the mean.
func spread(rounds []round, road string, callers int) string {
	list := make([]string, len(rounds))
	for i, r := range rounds {
		list[i] = fmt.Sprintf("%.2f", float64(r[road][callers].cpu)/float64(r["floor-parse"][callers].cpu))
	}
	return strings.Join(list, " ")
}
