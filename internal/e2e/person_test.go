package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/servertest"
)

// A person is the owner of a kit's organisation in a browser without a screen, signed in.
type person struct {
	t       *testing.T
	kit     *servertest.Kit
	browser *http.Client
}

func newPerson(t *testing.T, kit *servertest.Kit) *person {
	t.Helper()
	return &person{t, kit, kit.SignIn(t, kit.Owner)}
}

var (
	consentForm = regexp.MustCompile(`<input type="hidden" name="form" value="([^"]+)"`)
	onwardLink  = regexp.MustCompile(`href="([^"]+)" data-onward`)
)

// allow opens the address that a client sends its person to, reads what it asks for, presses Connect and returns where
// the browser goes on to. It fails the test where the page is another; app is who it should ask for.
func (p *person) allow(authorize, app string) *url.URL {
	p.t.Helper()
	return p.answers(authorize, app, "allow")
}

// deny is allow for somebody who presses Cancel.
func (p *person) deny(authorize, app string) *url.URL {
	p.t.Helper()
	return p.answers(authorize, app, "deny")
}

func (p *person) answers(authorize, app, answer string) *url.URL {
	p.t.Helper()
	to, err := p.tryAnswer(authorize, app, answer)
	if err != nil {
		p.t.Fatal(err)
	}
	return to
}

// tryAnswer is for a goroutine that is not the test's.
func (p *person) tryAnswer(authorize, app, answer string) (*url.URL, error) {
	at, page, err := p.open(http.MethodGet, authorize, nil)
	if err != nil {
		return nil, err
	}
	form := consentForm.FindStringSubmatch(page)
	if form == nil || !strings.Contains(page, "Let "+app+" work in") {
		return nil, errors.New("no question about " + app + " at " + at + ": " + page)
	}
	at, page, err = p.open(http.MethodPost, at, url.Values{"form": {html.UnescapeString(form[1])}, "answer": {answer}})
	if err != nil {
		return nil, err
	}
	link := onwardLink.FindStringSubmatch(page)
	if link == nil {
		return nil, errors.New("no way on to the app at " + at + ": " + page)
	}
	return url.Parse(html.UnescapeString(link[1]))
}

// open opens a page as a browser does, and returns where that ended and what stands there.
func (p *person) open(method, at string, form url.Values) (end, page string, err error) {
	req, err := http.NewRequestWithContext(p.t.Context(), method, at, strings.NewReader(form.Encode()))
	if err != nil {
		return "", "", err
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", p.kit.URL)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	resp, err := p.browser.Do(req)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(method + " " + at + " = " + resp.Status + ": " + string(body))
	}
	return resp.Request.URL.String(), string(body), err
}

// revokesAgentOf revokes, on its page, the agent that an access token is of.
func (p *person) revokesAgentOf(access string) {
	p.t.Helper()
	if _, page, err := p.open(http.MethodPost, p.kit.URL+"/agents/"+agentIn(p.t, access)+"/revoke", nil); err != nil || !strings.Contains(page, "is revoked.") {
		p.t.Fatalf("revoke the agent: %v: %s", err, page)
	}
}

// agentIn is the agent that an access token names.
func agentIn(t *testing.T, access string) string {
	t.Helper()
	var claims struct{ Sub string }
	parts := strings.Split(access, ".")
	if len(parts) != 3 {
		t.Fatalf("%q is no JWT", access)
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(text, &claims)
	}
	if err != nil {
		t.Fatal(err)
	}
	return claims.Sub
}
