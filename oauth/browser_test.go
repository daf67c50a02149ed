package oauth_test

import (
	"context"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/consent"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// began is a request as a browser keeps it.
type began struct {
	id      string
	cookies []*http.Cookie
}

// begins has an app begin in a browser that has these cookies.
func (h *house) begins(q url.Values, cookies ...*http.Cookie) began {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.replicas[0].URL+"/mcp/oauth/authorize?"+q.Encode(), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	got := h.send(r)
	id, ok := strings.CutPrefix(got.header.Get("Location"), "/consent/")
	if !ok {
		h.t.Fatalf("authorize = %d %v", got.status, got.header)
	}
	return began{id, (&http.Response{Header: got.header}).Cookies()}
}

// looks looks at a request in a browser that has these cookies.
func (h *house) looks(id string, cookies []*http.Cookie) error {
	r := &http.Request{Header: http.Header{}}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	_, err := h.replicas[0].oauth.Desk().Look(h.t.Context(), h.person.User, id, consent.BrowserToken(r, id, true))
	return err
}

func TestTwoFirstTabsAtOnceBothWork(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.register("none")
	one, two := h.begins(a.query()), h.begins(a.query()) // neither with the other's cookie
	both := append(one.cookies, two.cookies...)
	for _, b := range []began{one, two} {
		if err := h.looks(b.id, both); err != nil {
			t.Errorf("Look() of one of two = %v, want it", err)
		}
	}
	if err := h.looks(one.id, two.cookies); reason.Of(err).Word != reason.ConsentElsewhere {
		t.Errorf("Look() with the other's cookie = %v, want %s", err, reason.ConsentElsewhere)
	}
	if c := one.cookies[0]; c.MaxAge != int(consent.Life/time.Second) {
		t.Errorf("the cookie lives %d s, want as long as its request", c.MaxAge)
	}
}

func TestABrowserKeepsFewCookiesOfRequests(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.register("none")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	site := &url.URL{Scheme: "https", Host: "graft.example", Path: "/"}
	var all []began
	for range 15 {
		b := h.begins(a.query(), jar.Cookies(site)...)
		jar.SetCookies(site, b.cookies)
		all = append(all, b)
	}
	if got := len(jar.Cookies(site)); got != 10 {
		t.Errorf("the browser keeps %d cookies, want 10", got)
	}
	for i, b := range all {
		err := h.looks(b.id, jar.Cookies(site))
		if works := err == nil; works != (i >= 5) {
			t.Errorf("request %d of 15: %v, want the last ten to work", i, err)
		}
	}
}

// slowProver proves when it is let.
type slowProver struct {
	began   chan struct{}
	release chan struct{}
}

// Prove implements consent.Prover.
func (p slowProver) Prove(context.Context, string) (consent.Request, error) {
	p.began <- struct{}{}
	<-p.release
	return consent.Request{ClientID: "https://app.example/client.json"}, nil
}

func TestOnePersonHasFewRequestsProvenAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := slowProver{make(chan struct{}, 10), make(chan struct{})}
	desk := consent.NewDesk(consent.Config{DB: h.db, Prover: p, Issuer: origin, Now: h.now})
	look := func(user store.UserID) error {
		id, browser, err := desk.Begin(t.Context(), "", nil)
		if err == nil {
			_, err = desk.Look(t.Context(), user, id, browser)
		}
		return err
	}
	done := make(chan error, 3)
	for range 2 {
		go func() { done <- look(h.person.User) }()
		<-p.began
	}
	if err := look(h.person.User); reason.Of(err).Word != reason.Unavailable {
		t.Errorf("a third at once = %v, want %s", err, reason.Unavailable)
	}
	go func() { done <- look(store.NewID[store.UserKind](h.now())) }() // somebody else
	<-p.began
	close(p.release)
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := look(h.person.User); err != nil {
		t.Errorf("one more when these are done = %v", err)
	}
}

func TestAnswerWithAWrongFormFetchesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := slowProver{make(chan struct{}, 1), make(chan struct{})}
	close(p.release)
	desk := consent.NewDesk(consent.Config{DB: h.db, Prover: p, Issuer: origin, Now: h.now})
	id, browser, err := desk.Begin(t.Context(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"", "wrong"} {
		if _, err := desk.Answered(t.Context(), h.person.User, id, browser, form); reason.Of(err).Word != reason.ConsentElsewhere {
			t.Errorf("Answered() with form %q = %v, want %s", form, err, reason.ConsentElsewhere)
		}
	}
	if len(p.began) != 0 {
		t.Error("it was proven for a form that is not the page's")
	}
	pending, err := desk.Look(t.Context(), h.person.User, id, browser)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := desk.Answered(t.Context(), h.person.User, id, browser, pending.Form); err != nil {
		t.Errorf("Answered() with the page's form = %v", err)
	}
}
