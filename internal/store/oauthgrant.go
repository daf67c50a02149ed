package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/reason"
)

// A Grant is what a consent made: one client's way to one agent.
type Grant struct {
	ID              GrantID
	AgentID         AgentID
	UserID          UserID // who consented
	UserEmail       string
	ClientID        string // of a registration, or a document's URL
	ClientName      string // as it calls itself
	RedirectURI     string
	Scope           string
	CreatedAt       time.Time
	LastRefreshedAt *time.Time
	EndedAt         *time.Time
	EndedBy         UserID // zero where nobody did
	Cause           GrantCause
}

// GrantCause is why a grant ended.
type GrantCause string

// The causes.
const (
	GrantByPerson   GrantCause = "person"      // somebody ended it in the console
	GrantByClient   GrantCause = "client"      // the client revoked its refresh token
	GrantCodeReuse  GrantCause = "code_reuse"  // its code was presented a second time
	GrantTokenReuse GrantCause = "token_reuse" // a retired refresh token was presented after its time
	GrantByAgent    GrantCause = "agent"       // its agent was revoked
	GrantByMember   GrantCause = "member"      // who consented, or made the agent, was removed
)

// lastRefreshed is when a token of the grant g was last given for another. A refresh writes no grant: its newest token says it, and
// the grant once it has ended, when its tokens go.
const lastRefreshed = `greatest(g.last_refreshed_at, (
	SELECT t.created_at FROM oauth_token t
	WHERE t.grant_id = g.id AND t.rotated ORDER BY t.created_at DESC LIMIT 1))`

const selectGrants = `
	SELECT g.id, g.agent_id, g.user_id, u.email AS user_email, g.client_id, g.client_name, g.redirect_uri, g.scope, g.created_at,
	       ` + lastRefreshed + ` AS last_refreshed_at, g.ended_at, g.ended_by, coalesce(g.cause, '') AS cause
	FROM oauth_grant g JOIN user_account u ON u.id = g.user_id `

// A NewGrant is what a person allows.
type NewGrant struct {
	Request     TokenHash      // the stored request that is answered with it
	Agent       AgentID        // zero: a new one
	Name        string         // of the new one; one that is taken gets a number
	Connections []ConnectionID // that the new one may use, and no others
	ClientID    string
	ClientName  string
	Document    []byte // the client's metadata document; nil where it registered
	RedirectURI string
	Challenge   string // S256
	Scope       string
	CodeLives   time.Duration
}

// AllowRequest makes the agent, where it is a new one, its grant and its code, and spends the request, all or nothing. The
// code is returned once. An agent that the caller may not change is reason.NotFound.
func (tx *Tx) AllowRequest(ctx context.Context, n NewGrant) (AgentID, string, error) {
	if err := answerRequest(ctx, tx.tx, n.Request, tx.now); err != nil {
		return AgentID{}, "", err
	}
	// Whoever is being removed at this moment consents to nothing: their grant would be shown as one that works.
	if _, err := tx.roleOf(ctx, tx.caller.User); err != nil {
		return AgentID{}, "", err
	}
	agent := n.Agent
	if agent.IsZero() {
		var err error
		if agent, err = tx.numberedAgent(ctx, n.Name); err != nil {
			return AgentID{}, "", err
		}
		if err := tx.SetScope(ctx, agent, Scope{Listed: n.Connections}); err != nil {
			return AgentID{}, "", err
		}
	} else if err := tx.lockLiveAgent(ctx, agent); err != nil {
		return AgentID{}, "", err
	}
	if err := tx.roomForGrant(ctx, agent); err != nil {
		return AgentID{}, "", err
	}
	id := NewID[GrantKind](tx.now)
	registration, err := ParseID[ClientKind](n.ClientID)
	if err != nil {
		registration = ClientID{} // it is known by a document
	}
	if _, err := exec(ctx, tx.tx, `
		INSERT INTO oauth_grant (id, agent_id, user_id, client_id, registration, client_name, client_document, redirect_uri, scope, created_at)
		VALUES (@id, @agent, @user, @client, @registration, @name, @document, @redirect, @scope, @now)`,
		pgx.StrictNamedArgs{
			"id": id, "agent": agent, "user": tx.caller.User, "client": n.ClientID, "registration": registration, "name": n.ClientName, "document": n.Document,
			"redirect": n.RedirectURI, "scope": n.Scope, "now": tx.now,
		}); err != nil {
		return AgentID{}, "", err
	}
	code, hash := NewToken(CodePrefix)
	_, err = exec(ctx, tx.tx, `
		INSERT INTO oauth_code (hash, grant_id, redirect_uri, challenge, expires_at) VALUES (@hash, @grant, @redirect, @challenge, @expires)`,
		pgx.StrictNamedArgs{
			"hash": hash[:], "grant": id, "redirect": n.RedirectURI, "challenge": n.Challenge, "expires": tx.now.Add(n.CodeLives),
		})
	return agent, code, err
}

// maxNumber is the highest number that a taken name gets.
const maxNumber = 100

// numberedAgent makes an agent without a static token, called name or, where that is taken, name and a number.
func (tx *Tx) numberedAgent(ctx context.Context, name string) (AgentID, error) {
	for n := 1; ; n++ {
		numbered := withNumber(name, n)
		taken, err := value[bool](ctx, tx.tx, `SELECT EXISTS (SELECT FROM agent WHERE lower(name) = lower(@name) AND revoked_at IS NULL)`,
			pgx.StrictNamedArgs{"name": numbered})
		if err != nil {
			return AgentID{}, err
		}
		if taken && n < maxNumber {
			continue
		}
		id, err := tx.insertAgent(ctx, numbered, tx.caller.User, false)
		if n < maxNumber && err != nil && reason.Of(err).Word == reason.NameTaken {
			continue // by whom was quicker just now
		}
		return id, err
	}
}

// withNumber is name with a number behind it, cut so that both have room. A name that is too long by itself stays so.
func withNumber(name string, n int) string {
	if n == 1 {
		return name
	}
	number := fmt.Sprintf(" %d", n)
	runes := []rune(name)
	return strings.TrimRight(string(runes[:min(len(runes), maxAgentName-len(number))]), " ") + number
}

// maxGrants is how many live grants an agent may have: a client that connects again and again leaves the earlier ones behind.
const maxGrants = 100

// CountGrants counts an agent's live grants.
func (tx *Tx) CountGrants(ctx context.Context, agent AgentID) (int, error) {
	return value[int](ctx, tx.tx, `SELECT count(*)::int FROM oauth_grant WHERE agent_id = @agent AND ended_at IS NULL`, pgx.StrictNamedArgs{"agent": agent})
}

func (tx *Tx) roomForGrant(ctx context.Context, agent AgentID) error {
	n, err := tx.CountGrants(ctx, agent)
	if err == nil && n >= maxGrants {
		return reason.Refuse(reason.InputInvalid, "This agent has %d apps connected, which is the most. End one of them first.", maxGrants).Field("agent")
	}
	return err
}

// Grants lists an agent's grants, live ones first, then by when they began, the newest 200.
func (tx *Tx) Grants(ctx context.Context, agent AgentID) ([]Grant, error) {
	if err := tx.see(ctx, agent); err != nil {
		return nil, err
	}
	return all[Grant](ctx, tx.tx, selectGrants+`WHERE g.agent_id = @agent ORDER BY g.ended_at IS NOT NULL, g.created_at DESC, g.id DESC LIMIT 200`,
		pgx.StrictNamedArgs{"agent": agent})
}

// LiveGrants lists the organisation's grants that have not ended, the newest 500: to a member those of their own agents.
func (tx *Tx) LiveGrants(ctx context.Context) ([]Grant, error) {
	return all[Grant](ctx, tx.tx, selectGrants+`
		JOIN agent a ON a.id = g.agent_id
		WHERE g.ended_at IS NULL AND (@sees_all OR a.user_id = @user)
		ORDER BY g.created_at DESC, g.id DESC LIMIT 500`, pgx.StrictNamedArgs{"sees_all": tx.caller.seesAll(), "user": tx.caller.User})
}

// EndGrant ends a live grant of an agent that the caller may change, and returns it as it was. One that has ended is
// reason.NotFound.
func (tx *Tx) EndGrant(ctx context.Context, id GrantID) (Grant, error) {
	g, err := one[Grant](ctx, tx.tx, selectGrants+`WHERE g.id = @id AND g.ended_at IS NULL`, pgx.StrictNamedArgs{"id": id})
	if err != nil {
		return Grant{}, err
	}
	if err := tx.lockLiveAgent(ctx, g.AgentID); err != nil {
		return Grant{}, err
	}
	return g, tx.endGrant(ctx, id, g.AgentID, GrantByPerson)
}

// endGrant ends a grant with its codes and tokens. One that has ended already keeps its cause.
func (tx *Tx) endGrant(ctx context.Context, id GrantID, agent AgentID, cause GrantCause) error {
	by := tx.caller.User
	if cause != GrantByPerson {
		by = UserID{}
	}
	n, err := exec(ctx, tx.tx, `
		UPDATE oauth_grant g SET ended_at = @now, ended_by = @by, cause = @cause, last_refreshed_at = `+lastRefreshed+`
		WHERE g.id = @id AND g.ended_at IS NULL`,
		pgx.StrictNamedArgs{"id": id, "by": by, "cause": cause, "now": tx.now})
	if err != nil || n == 0 {
		return err
	}
	// What could be asked for again is not given any more.
	if _, err := exec(ctx, tx.tx, `DELETE FROM oauth_answer WHERE grant_id = @id`, pgx.StrictNamedArgs{"id": id}); err != nil {
		return err
	}
	return tx.tell(ctx, bus.Credential, agent.String())
}

// endGrantsOf ends the grants of an agent that is being revoked.
func (tx *Tx) endGrantsOf(ctx context.Context, agent AgentID) error {
	_, err := exec(ctx, tx.tx, `
		WITH ended AS (
			UPDATE oauth_grant g SET ended_at = @now, ended_by = @by, cause = 'agent', last_refreshed_at = `+lastRefreshed+`
			WHERE g.agent_id = @agent AND g.ended_at IS NULL RETURNING g.id)`+wipeEnded,
		pgx.StrictNamedArgs{"agent": agent, "by": tx.caller.User, "now": tx.now})
	return err
}

// wipeEnded goes on where grants end: what could be asked for again is not given any more. The grants first, as in endGrant,
// so that two who end the same do not wait for one another.
const wipeEnded = `
	DELETE FROM oauth_answer WHERE grant_id IN (SELECT id FROM ended)`
