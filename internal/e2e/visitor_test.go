package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/getgraft/graft/internal/e2e"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
)

var pictures = flag.Bool("pictures", false, "leave a picture of every page that a test looks at in .cache/screenshots")

// A visitor is a person at the console.
type visitor struct {
	*e2e.Page
	t   *testing.T
	url string // of the gateway
}

// Who the visitor is.
const (
	visitorEmail    = "ana@northfield.example"
	visitorPassword = "seven green kettles sing"
)

// firstVisitor is somebody at a gateway that nobody has used yet.
func firstVisitor(t *testing.T, p *e2e.Page) (*visitor, *servertest.Kit) {
	t.Helper()
	kit := servertest.Start(t, servertest.Options{Private: true})
	return &visitor{Page: p, t: t, url: kit.URL}, kit
}

// enter signs in as c, through a one-time link.
func (v *visitor) enter(kit *servertest.Kit, c store.Caller) {
	v.t.Helper()
	token, err := kit.DB.System().NewSignInLink(v.t.Context(), c.User, time.Hour)
	if err != nil {
		v.t.Fatal(err)
	}
	v.Visit(v.url + "/setup/" + token)
	v.Fill("#name", "Ana")
	v.Fill("#password", visitorPassword)
	v.arrive("main .btn.primary", "Hello, Ana")
}

// look is what is asked of every page there is.
func (v *visitor) look(name string) {
	v.t.Helper()
	v.Sound()
	if *pictures {
		v.Screenshot(name)
	}
}

// arrive submits or follows what selector finds, and expects a page with that heading.
func (v *visitor) arrive(selector, heading string) {
	v.t.Helper()
	if got := v.Submit(selector); got != http.StatusOK {
		v.t.Errorf("%s leads to status %d, want 200", selector, got)
	}
	v.SeeText("h1", heading)
}

// welcome opens the welcome link and becomes the owner of Northfield.
func (v *visitor) welcome(kit *servertest.Kit) {
	v.t.Helper()
	token, err := kit.DB.System().NewWelcomeLink(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	if got := v.Visit(v.url + "/setup/" + token); got != http.StatusOK {
		v.t.Fatalf("welcome link = %d, want 200", got)
	}
	v.SeeText("h1", "Set up Graft")
	v.look("welcome")
	v.Fill("#name", "Ana")
	v.Fill("#email", visitorEmail)
	v.Fill("#organisation", "Northfield")
	v.Fill("#password", visitorPassword)
	v.arrive("main .btn.primary", "Hello, Ana")
	if got := v.Path(); got != "/" {
		v.t.Errorf("after the welcome: %s, want /", got)
	}
}

// makeAgent makes one on the page New agent, which must be shown, and returns the token that the next page shows.
func (v *visitor) makeAgent(name string) (token string) {
	v.t.Helper()
	v.Fill("#name", name)
	if v.View().NoScript {
		v.Submit("main .btn.primary")
	} else {
		v.Click("main .btn.primary") // the script puts the answer in place
	}
	v.SeeText("h1", name)
	return v.token()
}

var tokenForm = regexp.MustCompile(`^grft_[0-9A-Za-z_-]{32,}$`)

// token is the one that the agent's page shows.
func (v *visitor) token() string {
	v.t.Helper()
	token := v.Text("[aria-labelledby=token] pre")
	if !tokenForm.MatchString(token) {
		v.t.Fatalf("token on the page = %q, want one of an agent", token)
	}
	return token
}

// side brings an entry of the side list into sight, which a phone keeps in a drawer.
func (v *visitor) side(selector string) {
	v.t.Helper()
	if v.View().Width < e2e.Desk.Width {
		v.Click("[popovertarget=side]")
	}
	v.See(selector)
}

func (v *visitor) signOut() {
	v.t.Helper()
	v.side(`form[action="/signout"] button`)
	v.arrive(`form[action="/signout"] button`, "Sign in")
}

func (v *visitor) signIn() {
	v.t.Helper()
	v.Fill("#email", visitorEmail)
	v.Fill("#password", visitorPassword)
	v.arrive(withPassword, "Hello, Ana")
}

// withPassword is the button that signs in with a password, beside the one with a passkey.
const withPassword = "main form:not([data-passkeys]) > .btn"

// attribute of the first element that a selector finds; "" where there is none.
func (v *visitor) attribute(selector, name string) string {
	v.t.Helper()
	return v.eval(`document.querySelector(` + quote(selector) + `)?.getAttribute(` + quote(name) + `) ?? ""`)
}

// visible says whether anything that a selector finds can be seen.
func (v *visitor) visible(selector string) bool {
	v.t.Helper()
	return v.is(`[...document.querySelectorAll(` + quote(selector) + `)].some(e => e.checkVisibility())`)
}

// eval reads a string from the page.
func (v *visitor) eval(expression string) string {
	v.t.Helper()
	return e2e.Read(v.Page, chromedp.Evaluate[string](expression))
}

// eventually waits for what becomes true in its own time.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for !done() {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within half a minute", what)
		}
	}
}

// shows says whether an element's visible text contains text now.
func (v *visitor) shows(selector, text string) bool {
	v.t.Helper()
	return v.is(`document.querySelector(` + quote(selector) + `)?.innerText.includes(` + quote(text) + `)`)
}

// is says whether something holds on the page.
func (v *visitor) is(expression string) bool {
	v.t.Helper()
	return e2e.Read(v.Page, chromedp.Evaluate[bool](`!!(`+expression+`)`))
}

func quote(s string) string {
	b, _ := json.Marshal(s) // a string can be
	return string(b)
}

// A bearer is an MCP client with an agent's token, over bare HTTP. It opens no stream.
type bearer struct {
	t       *testing.T
	url     string
	token   string
	session string
	id      int
}

// connect opens a session.
func connect(t *testing.T, gateway, token string) *bearer {
	t.Helper()
	b := &bearer{t: t, url: gateway + "/mcp", token: token}
	status, answer := b.send("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "Hermes", "version": "0.9"},
	})
	if status != http.StatusOK || b.session == "" {
		t.Fatalf("initialize = %d in session %q: %s", status, b.session, answer)
	}
	return b
}

// call runs builtin__reshape through run_tool and returns the HTTP status of the answer.
func (b *bearer) call() int {
	b.t.Helper()
	status, answer := b.send("tools/call", map[string]any{"name": "run_tool", "arguments": reshape()})
	if status == http.StatusOK && !strings.Contains(answer, marker) {
		b.t.Errorf("run_tool = %s, want %q in it", answer, marker)
	}
	return status
}

func (b *bearer) send(method string, params any) (status int, answer string) {
	b.t.Helper()
	b.id++
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": b.id, "method": method, "params": params})
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url, bytes.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+b.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if b.session != "" {
		r.Header.Set("Mcp-Session-Id", b.session)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		b.session = id
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}
