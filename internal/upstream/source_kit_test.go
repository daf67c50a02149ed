package upstream_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/internal/upstream"
	"github.com/getgraft/graft/internal/upstream/upstreamtest"
	"github.com/getgraft/graft/internal/vault"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// A house is an organisation with its upstreams.
type house struct {
	t     testing.TB
	db    *store.DB
	owner store.Caller
	keys  *vault.Keyring
	log   *lockedLog
}

// lockedLog is a log that is read while it is written.
type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newHouse(t testing.TB) *house {
	t.Helper()
	db, owner := storetest.New(t)
	return &house{t: t, db: db, owner: owner, keys: storetest.Keyring(t, db), log: &lockedLog{}}
}

// A replica is a Source with its bus, as a gateway has them.
type replica struct {
	*house
	*upstream.Source
	db   *store.DB
	bus  *bus.Bus
	stop func() // ends it as a gateway that stops does
}

// replica starts one more. Of c the durations are used.
func (h *house) replica(c upstream.Config) *replica {
	h.t.Helper()
	r := &replica{house: h, db: storetest.Open(h.t, storetest.URL(h.t), nil)}
	log := slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r.bus = bus.New(bus.Config{URL: storetest.URL(h.t), Log: log})
	c.DB, c.Keys, c.Client, c.Healthy, c.Version, c.Log = r.db, h.keys, newClient(h.t), r.bus.Healthy, "test", log
	var err error
	if r.Source, err = upstream.NewSource(c); err != nil {
		h.t.Fatal(err)
	}
	r.bus.Listen(r.Source)
	ctx, cancel := context.WithCancel(context.Background())
	var beside sync.WaitGroup
	beside.Go(func() { r.bus.Run(ctx) })
	beside.Go(func() { r.Keep(ctx) })
	r.stop = func() { cancel(); beside.Wait() }
	h.t.Cleanup(r.stop)
	eventually(h.t, "the bus to be healthy", r.bus.Healthy)
	return r
}

// one is a house with one replica.
func one(t testing.TB) *replica {
	t.Helper()
	return newHouse(t).replica(upstream.Config{})
}

// add adds an upstream that must be well, whose hints are trusted.
func (r *replica) add(name, url string, headers ...upstream.Header) store.Upstream {
	r.t.Helper()
	u := r.tryAdd(name, url, headers...)
	if u.State != store.UpstreamOK {
		r.t.Fatalf("Add(%s) = %s: %s, want ok", name, u.State, u.LastError)
	}
	return u
}

// Add adds an upstream and lists it.
func (r *replica) Add(ctx context.Context, c store.Caller, in upstream.Addition) (store.Upstream, error) {
	u, err := r.Source.Add(ctx, c, in)
	if err != nil {
		return u, err
	}
	return r.Try(ctx, c, u.ID)
}

func (r *replica) tryAdd(name, url string, headers ...upstream.Header) store.Upstream {
	r.t.Helper()
	u, err := r.Add(r.t.Context(), r.owner, upstream.Addition{Name: name, URL: url, Headers: headers, Settings: store.UpstreamSettings{TrustHints: true}})
	if err != nil {
		r.t.Fatal(err)
	}
	return u
}

// agent is a caller as an agent's token gives one.
func (h *house) agent() store.Caller {
	return store.Caller{Org: h.owner.Org, User: h.owner.User, Agent: store.NewID[store.AgentKind](h.db.Now()), Role: h.owner.Role, Via: store.ViaBearer}
}

// tools are by wire name.
func (r *replica) tools() map[string]catalog.Tool {
	r.t.Helper()
	list, err := r.Tools(r.t.Context(), r.owner)
	if err != nil {
		r.t.Fatal(err)
	}
	byName := map[string]catalog.Tool{}
	for _, tool := range list {
		byName[tool.Wire()] = tool
	}
	return byName
}

// try calls a tool as the catalogue would.
func (r *replica) try(c store.Caller, wire, args string) (string, error) {
	r.t.Helper()
	tool, ok := r.tools()[wire]
	if !ok {
		r.t.Fatalf("there is no tool %s", wire)
	}
	out, err := r.Run(r.t.Context(), catalog.Run{Caller: c, Tool: tool, Args: jsontext.Value(args), Client: catalog.Nobody{}})
	return string(out.Raw), err
}

func (r *replica) must(c store.Caller, wire, args string) string {
	r.t.Helper()
	out, err := r.try(c, wire, args)
	if err != nil {
		r.t.Fatalf("%s(%s) = %v, want a result", wire, args, err)
	}
	return out
}

// count is how many requests of a method the server saw.
func count(srv *upstreamtest.Server, method string) int { return len(srv.Requests(method)) }
