package consent

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

const (
	// Life is how long a person has to answer.
	Life = 10 * time.Minute
	// codeLife is how long a client has to redeem its code (RFC 6749 §4.1.2).
	codeLife = 10 * time.Minute
	// maxQuery bounds what came: some clients send a state of several KB.
	maxQuery = 12 << 10
)

// A Request is what a client asks for, proven: it is that client's, and its answer goes where the client may have it go.
type Request struct {
	ClientID    string          `json:"clientId"`
	ClientName  string          `json:"clientName"` // as it calls itself
	Document    json.RawMessage `json:"document,omitempty"`
	RedirectURI string          `json:"redirectUri"`
	State       string          `json:"-"` // as it came, which JSON may not be able to say: it stands in the query that is kept
	Challenge   string          `json:"challenge"`
	Scope       string          `json:"scope"`
}

// A Prover proves the query of an authorization request. An error is a *Bounce where the client is proven and what it asks
// for is wrong, and a *reason.Refusal, for a page, where it is not.
type Prover interface {
	Prove(ctx context.Context, query string) (Request, error)
}

// A Bounce is an error that the client is told, by the address that the browser is sent to.
type Bounce struct{ URL string }

// Error implements error.
func (b *Bounce) Error() string { return "the client is told" }

// Config is what a Desk needs. All of it is required.
type Config struct {
	DB     *store.DB
	Prover Prover
	Issuer string // stands in every answer (RFC 9207)
	Now    func() time.Time
}

// A Desk keeps requests.
type Desk struct {
	c Config

	mu      sync.Mutex
	proving map[store.UserID]int // how many requests are being proven for somebody
}

// NewDesk makes a Desk.
func NewDesk(c Config) *Desk { return &Desk{c: c, proving: map[store.UserID]int{}} }

// Begin stores a request and returns the id that it is known by, and the token of the browser that it is bound to. proven
// is nil where that has to wait until somebody has signed in.
func (d *Desk) Begin(ctx context.Context, query string, proven *Request) (id, browser string, err error) {
	if len(query) > maxQuery {
		return "", "", reason.Refuse(reason.ClientNotProven, "The app's request is %d bytes long. At most %d are taken.", len(query), maxQuery)
	}
	var kept []byte
	if proven != nil {
		if kept, err = json.Marshal(proven); err != nil {
			return "", "", fmt.Errorf("keep request: %w", err)
		}
	}
	id, hash := store.NewToken(store.ConsentTokenPrefix)
	browser, bound := store.NewToken(store.BrowserTokenPrefix)
	form, _ := store.NewToken("")
	now := d.c.Now()
	return id, browser, d.c.DB.System().AddOAuthRequest(ctx, store.OAuthRequest{
		Hash: hash, Browser: bound, Form: form, Query: query, Proven: kept, CreatedAt: now, ExpiresAt: now.Add(Life),
	})
}

// A Pending is a request that waits for an answer.
type Pending struct {
	Request
	Form    string // what the form must repeat
	Expires time.Time
	hash    store.TokenHash
}

// Look returns the request of an id, for the user who has signed in, in the browser of that token. An error is a *Bounce,
// or for a page: consent_not_valid, consent_elsewhere, client_not_proven, unavailable.
func (d *Desk) Look(ctx context.Context, user store.UserID, id, browser string) (Pending, error) {
	row, err := d.find(ctx, id, browser)
	if err != nil {
		return Pending{}, err
	}
	return d.pending(ctx, user, row)
}

// Answered is Look for an answer: form is what its form repeats. One that is wrong is consent_elsewhere before anything is
// fetched for it. It is the request's own token, not the session's, so that two tabs do not take it from one another.
func (d *Desk) Answered(ctx context.Context, user store.UserID, id, browser, form string) (Pending, error) {
	row, err := d.find(ctx, id, browser)
	if err != nil {
		return Pending{}, err
	}
	if subtle.ConstantTimeCompare([]byte(form), []byte(row.Form)) == 0 {
		return Pending{}, reason.Refuse(reason.ConsentElsewhere, "This answer did not come from the page that asks. Nothing was done. Connect again from the app.")
	}
	return d.pending(ctx, user, row)
}

// find reads the request of an id that waits in the browser of that token.
func (d *Desk) find(ctx context.Context, id, browser string) (store.OAuthRequest, error) {
	if !store.WellFormed(store.ConsentTokenPrefix, id) {
		return store.OAuthRequest{}, gone()
	}
	row, err := d.c.DB.System().OAuthRequest(ctx, store.HashToken(id))
	if store.IsAbsent(err) {
		return store.OAuthRequest{}, gone()
	}
	if err != nil {
		return store.OAuthRequest{}, err
	}
	if row.AnsweredAt != nil || !row.ExpiresAt.After(d.c.Now()) { // before the browser, whose cookie went with the answer
		return store.OAuthRequest{}, gone()
	}
	theirs := store.HashToken(browser)
	if subtle.ConstantTimeCompare(theirs[:], row.Browser[:]) == 0 {
		return store.OAuthRequest{}, reason.Refuse(reason.ConsentElsewhere, "The app began this in another browser. Answer it there, or connect again from the app in this browser.")
	}
	return row, nil
}

// pending is a request that was found, proven now where that was not done yet.
func (d *Desk) pending(ctx context.Context, user store.UserID, row store.OAuthRequest) (Pending, error) {
	p := Pending{Form: row.Form, Expires: row.ExpiresAt, hash: row.Hash}
	if row.Proven != nil {
		err := json.Unmarshal(row.Proven, &p.Request)
		p.State = stateOf(row.Query)
		return p, err
	}
	leave, err := d.enter(user)
	if err != nil {
		return Pending{}, err
	}
	defer leave()
	if p.Request, err = d.c.Prover.Prove(ctx, row.Query); err != nil {
		return Pending{}, err
	}
	kept, err := json.Marshal(p.Request)
	if err != nil {
		return Pending{}, fmt.Errorf("keep request: %w", err)
	}
	return p, d.c.DB.System().ProveOAuthRequest(ctx, row.Hash, kept)
}

// maxProving is how many requests of one person are proven at once: what that fetches has few places, which are everybody's.
const maxProving = 2

// enter takes one of a person's places.
func (d *Desk) enter(user store.UserID) (leave func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.proving[user] >= maxProving {
		return nil, reason.Refuse(reason.Unavailable, "%d other apps of yours are being looked at. Try again when these are.", maxProving)
	}
	d.proving[user]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.proving[user]--; d.proving[user] == 0 {
			delete(d.proving, user)
		}
	}, nil
}

// stateOf is the state in the query of a request that was proven.
func stateOf(query string) string {
	values, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	return values.Get("state")
}

func gone() error {
	return reason.Refuse(reason.ConsentNotValid, "This request was answered already, or is older than ten minutes. Connect again from the app.")
}

// A Choice is what a person allows.
type Choice struct {
	Agent store.AgentID // zero: a new one
	Name  string        // of the new one
	// Connections are those that the new one may use; an existing one keeps its own.
	Connections []store.ConnectionID
}

// Allow makes agent, grant and code, and returns the address that the browser goes on to.
func (d *Desk) Allow(ctx context.Context, c store.Caller, p Pending, choice Choice) (store.AgentID, string, error) {
	var agent store.AgentID
	var code string
	err := d.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		agent, code, err = tx.AllowRequest(ctx, store.NewGrant{
			Request: p.hash, Agent: choice.Agent, Name: choice.Name, Connections: choice.Connections, ClientID: p.ClientID, ClientName: p.ClientName, Document: p.Document,
			RedirectURI: p.RedirectURI, Challenge: p.Challenge, Scope: p.Scope, CodeLives: codeLife,
		})
		return err
	})
	if err != nil {
		return store.AgentID{}, "", err
	}
	return agent, Answer(p.RedirectURI, d.c.Issuer, p.State, url.Values{"code": {code}}), nil
}

// Deny ends the request and returns the address that the browser goes on to.
func (d *Desk) Deny(ctx context.Context, p Pending) (string, error) {
	if err := d.c.DB.System().AnswerOAuthRequest(ctx, p.hash); err != nil {
		return "", err
	}
	return Answer(p.RedirectURI, d.c.Issuer, p.State, url.Values{
		"error": {"access_denied"}, "error_description": {"The person did not allow it."},
	}), nil
}

// Answer is a redirect URI with an answer in its query, beside what stands there already (RFC 6749 §3.1.2, RFC 9207 §2).
// state is left out where there was none.
func Answer(redirectURI, issuer, state string, answer url.Values) string {
	answer.Set("iss", issuer)
	if state != "" {
		answer.Set("state", state)
	}
	between := "?"
	switch {
	case strings.HasSuffix(redirectURI, "?"), strings.HasSuffix(redirectURI, "&"):
		between = ""
	case strings.Contains(redirectURI, "?"):
		between = "&"
	}
	return redirectURI + between + answer.Encode()
}
