package mcp

import (
	"testing"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
)

func sealing(t testing.TB) *Handler {
	t.Helper()
	master, err := vault.ParseMasterKeys(vault.GenerateMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := master.NewDataKey(vault.Owner{Purpose: "test", ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	box, err := vault.NewBox("test", key)
	if err != nil {
		t.Fatal(err)
	}
	return &Handler{c: Config{Sessions: box, Now: time.Now}}
}

func newSession() session {
	return session{
		id: store.NewID[store.SessionKind](time.Now()), agent: store.NewID[store.AgentKind](time.Now()),
		version: "2025-06-18", can: canElicitForm | canElicitURL,
	}
}

func TestSessionIDsSayWhatWasSealed(t *testing.T) {
	t.Parallel()
	h, s := sealing(t), newSession()
	id := h.sealSession(s)
	if len(id) > maxSessionID {
		t.Errorf("an id has %d characters, want at most %d", len(id), maxSessionID)
	}
	for _, r := range id {
		if r < 0x21 || r > 0x7e { // visible ASCII, as the transport asks
			t.Errorf("id %q has %q", id, r)
		}
	}
	got, err := h.openSession(id, store.Caller{Agent: s.agent})
	if err != nil || got != s {
		t.Errorf("opened = %+v, %v; want %+v", got, err, s)
	}
	if _, err := h.openSession(id, store.Caller{Agent: store.NewID[store.AgentKind](time.Now())}); reason.Of(err).Word != reason.SessionMismatch {
		t.Errorf("another agent's = %v, want session_mismatch", err)
	}
	if _, err := sealing(t).openSession(id, store.Caller{Agent: s.agent}); reason.Of(err).Word != reason.SessionNotFound {
		t.Errorf("under another key = %v, want session_not_found", err)
	}
}

func TestCapabilitiesThatCount(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name string
		in   *mcpgo.ElicitationCapability
		want capability
	}{
		{"none", nil, 0},
		{"elicitation: {}", &mcpgo.ElicitationCapability{}, canElicitForm},
		{"url alone", &mcpgo.ElicitationCapability{URL: &struct{}{}}, canElicitURL},
		{"both", &mcpgo.ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}}, canElicitForm | canElicitURL},
	} {
		if got := elicits(x.in); got != x.want {
			t.Errorf("%s = %b, want %b", x.name, got, x.want)
		}
	}
}

// No bytes but those we sealed open, and none make the gateway stumble.
func FuzzSessionID(f *testing.F) {
	h := sealing(f)
	s := newSession()
	real := h.sealSession(s)
	for _, seed := range []string{real, "", "A", real[:20], real + real, "7b1e0000-dead-4000-8000-00000000beef", "\x00", "%00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		got, err := h.openSession(id, store.Caller{Agent: s.agent})
		if (err == nil) != (id == real) {
			t.Errorf("openSession(%q) = %+v, %v", id, got, err)
		}
	})
}

func BenchmarkSession(b *testing.B) {
	h, s := sealing(b), newSession()
	id := h.sealSession(s)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.openSession(id, store.Caller{Agent: s.agent}); err != nil {
			b.Fatal(err)
		}
	}
}
