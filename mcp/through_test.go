package mcp_test

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/getgraft/graft/internal/catalog"
	connections "github.com/getgraft/graft/internal/connect"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// A vendor gives back what it is shown, in every way there is, and takes one token alone.
type vendor struct {
	url   string
	takes atomic.Pointer[string]
	seen  atomic.Int64 // requests with the right token
}

func startVendor(t *testing.T, token string) *vendor {
	t.Helper()
	v := &vendor{}
	v.takes.Store(&token)
	server := httptest.NewServer(http.HandlerFunc(v.serve))
	t.Cleanup(server.Close)
	v.url = server.URL
	return v
}

func (v *vendor) serve(w http.ResponseWriter, r *http.Request) {
	shown := r.Header.Get("Authorization")
	token := strings.TrimPrefix(shown, "Bearer ")
	if token != *v.takes.Load() {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"error":"bad token %s"}`, token)
		return
	}
	v.seen.Add(1)
	switch r.URL.Path {
	case "/headers":
		_ = json.NewEncoder(w).Encode(r.Header)
	case "/encoded":
		_, _ = fmt.Fprintf(w, "%s %s %s %s %s", base64.StdEncoding.EncodeToString([]byte(shown)), base64.RawURLEncoding.EncodeToString([]byte("x"+token)),
			hex.EncodeToString([]byte(token)), url.QueryEscape(token), url.PathEscape(token))
	case "/header":
		w.Header().Set("X-Seen", shown)
		w.Header().Set("Set-Cookie", "token="+url.QueryEscape(token))
	case "/redirect":
		w.Header().Set("Location", "/next?token="+url.QueryEscape(token))
		w.WriteHeader(http.StatusFound)
	case "/gzip":
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = fmt.Fprintf(z, "zipped %s", token)
		_ = z.Close()
	case "/split":
		for _, part := range []string{"split ", token[:7], token[7:9], token[9:]} {
			_, _ = fmt.Fprint(w, part)
			w.(http.Flusher).Flush()
		}
	case "/forbidden":
		w.WriteHeader(http.StatusForbidden)
	default:
		_, _ = fmt.Fprint(w, "fine")
	}
}

// throughGateway is a gateway whose fixture sends through connections, and an agent of its owner.
func throughGateway(t *testing.T) (*servertest.Kit, *connections.Desk, *client) {
	t.Helper()
	source := &servertest.Through{}
	k := servertest.Start(t, servertest.Options{Private: true, Sources: []catalog.Source{source}})
	desk := k.Connections(t)
	k.Owner = storetest.Organisation(t, k.DB)
	source.Set(desk)
	_, token := k.Agent(t)
	c := &client{t: t, url: k.URL + "/mcp", token: token}
	c.open("2025-11-25")
	return k, desk, c
}

func (c *client) reads(id store.ConnectionID, address string) string {
	c.t.Helper()
	return c.call("run_tool", fmt.Sprintf(`{"vendor":"through","name":"read","input":{"connectionId":%q,"url":%q}}`, id, address)).text()
}

// A secret that a person entered is seen by its vendor alone: whatever that gives back, no result, log, page or row has it.
func TestNoAgentSeesASecret(t *testing.T) {
	t.Parallel()
	const sent = "CANARY/+7f3a-sk_live" // what a header may carry
	k, desk, c := throughGateway(t)
	v := startVendor(t, sent)
	made, err := desk.Make(t.Context(), k.Owner, connections.Entry{
		Proposal: connections.Proposal{Vendor: "vendor", Scheme: "bearer", PrimaryHost: v.url}, Fields: map[string]string{"token": "Bearer " + sent + "\n"},
	})
	if err != nil {
		t.Fatal(err)
	}
	forms := []string{
		sent, url.QueryEscape(sent), url.PathEscape(sent), hex.EncodeToString([]byte(sent)), base64.StdEncoding.EncodeToString([]byte(sent)),
		base64.StdEncoding.EncodeToString([]byte("Bearer " + sent)), base64.RawURLEncoding.EncodeToString([]byte("x" + sent)), `CANARY\/+7f3a`,
	}
	clean := func(where, text string) {
		t.Helper()
		for _, form := range forms {
			if strings.Contains(text, form) {
				t.Errorf("%s holds %q:\n%.600s", where, form, text)
			}
		}
	}
	for path, want := range map[string]string{
		"/headers": "redacted", "/encoded": "redacted", "/header": "redacted", "/redirect": "redacted", "/gzip": "zipped", "/split": "split", "/": "fine",
		"/split?q=" + url.QueryEscape(sent): "split",
	} {
		got := c.reads(made.ID, v.url+path)
		if !strings.Contains(got, want) {
			t.Errorf("%s = %s, want %q in it", path, got, want)
		}
		clean(path, got)
	}
	if n := v.seen.Load(); n != 8 {
		t.Errorf("the vendor was shown the token %d times, want 8", n)
	}
	clean("an address elsewhere", c.reads(made.ID, "http://127.0.0.2:1/?token="+url.QueryEscape(sent)))
	clean("find_tool", c.call("find_tool", `{"query":"vendor"}`).text())
	browser := k.SignIn(t, k.Owner)
	for _, path := range []string{"/connections", "/connections/" + made.ID.String(), "/activity", "/asks", "/agents"} {
		clean(path, pageOf(t, browser, k.URL+path))
	}
	clean("the log", k.Log.String())
	for _, form := range forms {
		if tables := storetest.Holders(t, k.DSN, form); len(tables) > 0 {
			t.Errorf("%v hold %q", tables, form)
		}
	}
}

// A vendor's 401 is the connection's health; a new credential is used at once, on every replica (G06).
func TestADeadCredentialIsNoticedAndMended(t *testing.T) {
	t.Parallel()
	k, desk, c := throughGateway(t)
	v := startVendor(t, "first-token")
	made, err := desk.Make(t.Context(), k.Owner, connections.Entry{
		Proposal: connections.Proposal{Vendor: "vendor", Scheme: "bearer", PrimaryHost: v.url}, Fields: map[string]string{"token": "first-token"},
	})
	if err != nil {
		t.Fatal(err)
	}
	status := func() string {
		var found struct{ Connections []struct{ Status string } }
		unmarshal(t, c.call("find_tool", `{"query":"vendor"}`).text(), &found)
		if len(found.Connections) != 1 {
			return fmt.Sprint(found.Connections)
		}
		return found.Connections[0].Status
	}
	for range 3 {
		if got := c.reads(made.ID, v.url+"/"); !strings.Contains(got, "fine") {
			t.Fatalf("read = %s", got)
		}
	}
	eventually(t, "it is connected", onEachReplica(func() bool { return status() == "connected" }))
	c.reads(made.ID, v.url+"/forbidden") // says nothing of the credential
	second := "second-token"
	v.takes.Store(&second)
	if got := c.reads(made.ID, v.url+"/"); !strings.Contains(got, "401") || strings.Contains(got, "first-token") {
		t.Errorf("with a dead token = %s, want the vendor's 401 without it", got)
	}
	eventually(t, "it is failing", onEachReplica(func() bool { return status() == "failing" }))
	if a := c.asks("request_connection", fmt.Sprintf(`{"vendor":"vendor","primaryHost":%q,"scheme":"bearer"}`, v.url)); a.Reason != "connection_exists" || a.ConnectionID != made.ID.String() {
		t.Errorf("request_connection = %+v, want connection_exists", a)
	}
	if _, err := desk.Enter(t.Context(), k.Owner, made.ID, map[string]string{"token": second}, store.AskID{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := c.reads(made.ID, v.url+"/"); !strings.Contains(got, "fine") {
			t.Errorf("with the new token = %s", got)
		}
	}
	eventually(t, "it is connected again", onEachReplica(func() bool { return status() == "connected" }))

	// Revoked, nothing goes out any more.
	before := v.seen.Load()
	if err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error { _, err := tx.RevokeConnection(t.Context(), made.ID); return err }); err != nil {
		t.Fatal(err)
	}
	if got := c.reads(made.ID, v.url+"/"); !strings.Contains(got, "connection_revoked") || v.seen.Load() != before {
		t.Errorf("once it is revoked = %s", got)
	}
}

// A request goes where the connection says, and nowhere else.
func TestAConnectionPinsItsHosts(t *testing.T) {
	t.Parallel()
	k, desk, c := throughGateway(t)
	v, elsewhere := startVendor(t, "the-token"), startVendor(t, "the-token")
	made, err := desk.Make(t.Context(), k.Owner, connections.Entry{
		Proposal: connections.Proposal{Vendor: "vendor", Scheme: "bearer", PrimaryHost: v.url + "/api"}, Fields: map[string]string{"token": "the-token"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.reads(made.ID, v.url+"/api/x"); !strings.Contains(got, "fine") {
		t.Errorf("below its path = %s", got)
	}
	before := v.seen.Load()
	for _, address := range []string{elsewhere.url + "/api/x", v.url + "/", v.url + "/apix", v.url + "/api/../x", v.url + "/api/%2e%2e/x", "https://example.com/api"} {
		if got := c.reads(made.ID, address); !strings.Contains(got, `"refused"`) {
			t.Errorf("%s = %s, want a refusal", address, got)
		}
	}
	if elsewhere.seen.Load() != 0 || v.seen.Load() != before {
		t.Error("a request went where it may not")
	}
}

// pageOf is what a browser is shown.
func pageOf(t *testing.T, browser *http.Client, address string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := browser.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s = %d, %v", address, resp.StatusCode, err)
	}
	return string(b)
}
