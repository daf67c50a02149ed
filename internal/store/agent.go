package store

import (
	"context"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/reason"
)

// An Agent is one connected client identity. Every token resolves to exactly one.
type Agent struct {
	ID            AgentID
	Name          string
	UserID        UserID // who made it
	UserName      string // their name, or their e-mail while they have none
	AdvancedTools bool
	IdleDays      int // a tool that was not used for longer leaves its working set
	ToolCap       int // above it, tools that were never used do
	CreatedAt     time.Time
	LastUsedAt    *time.Time
	RevokedAt     *time.Time
	RevokedBy     string  // name or e-mail; "" when the CLI did, or while live
	TokenHint     *string // of the live static token; nil without one
	TokenMadeAt   *time.Time
	Passthrough   string // the upstream that it is bound to; "" for none
}

const agentColumns = `
	a.id, a.name, a.user_id, coalesce(nullif(u.name, ''), u.email) AS user_name, a.advanced_tools,
	a.idle_days, a.tool_cap, a.created_at,
	a.last_used_at, a.revoked_at, coalesce(nullif(r.name, ''), r.email, '') AS revoked_by, t.hint AS token_hint, t.created_at AS token_made_at,
	coalesce(b.name, '') AS passthrough
	FROM agent a
	JOIN user_account u ON u.id = a.user_id
	LEFT JOIN user_account r ON r.id = a.revoked_by
	LEFT JOIN agent_token t ON t.agent_id = a.id AND t.ended_at IS NULL
	LEFT JOIN upstream b ON b.id = a.passthrough`

// An AgentFilter says which agents a list shows.
type AgentFilter struct {
	Name string    // part of the name, whatever its case; "" does not narrow
	IDs  []AgentID // nil does not narrow
	Most int       // 0 means MaxAgents, and that is the most
}

// MaxAgents bounds a list of agents.
const MaxAgents = 1000

// Agents lists agents that the caller may see, live ones first, the last used before the others.
func (tx *Tx) Agents(ctx context.Context, f AgentFilter) ([]Agent, error) {
	most := min(f.Most, MaxAgents)
	if most <= 0 {
		most = MaxAgents
	}
	return all[Agent](ctx, tx.tx, `SELECT `+agentColumns+`
		WHERE (@sees_all OR a.user_id = @user) AND (@name = '' OR position(lower(@name) IN lower(a.name)) > 0)
		  AND (@ids::uuid[] IS NULL OR a.id = ANY (@ids::uuid[]))
		ORDER BY a.revoked_at IS NOT NULL, a.last_used_at DESC NULLS LAST, a.created_at DESC, a.id LIMIT @most`,
		pgx.StrictNamedArgs{"sees_all": tx.caller.seesAll(), "user": tx.caller.User, "name": f.Name, "ids": f.IDs, "most": most})
}

// CountAgents is how many agents the caller may see.
func (tx *Tx) CountAgents(ctx context.Context) (int, error) {
	return value[int](ctx, tx.tx, `SELECT count(*)::int FROM agent a WHERE @sees_all OR a.user_id = @user`,
		pgx.StrictNamedArgs{"sees_all": tx.caller.seesAll(), "user": tx.caller.User})
}

// Agent is one agent, revoked or not.
func (tx *Tx) Agent(ctx context.Context, id AgentID) (Agent, error) {
	a, err := one[Agent](ctx, tx.tx, `SELECT `+agentColumns+` WHERE a.id = @id`, pgx.StrictNamedArgs{"id": id})
	if err == nil && !tx.caller.maySee(a.UserID) {
		return Agent{}, reason.NotFound
	}
	return a, err
}

// AgentByName is a live agent, whatever the case of its name.
func (tx *Tx) AgentByName(ctx context.Context, name string) (Agent, error) {
	a, err := one[Agent](ctx, tx.tx, `SELECT `+agentColumns+`
		WHERE lower(a.name) = lower(@name) AND a.revoked_at IS NULL`, pgx.StrictNamedArgs{"name": name})
	if err == nil && !tx.caller.maySee(a.UserID) {
		return Agent{}, reason.NotFound
	}
	return a, err
}

// maxAgentName is how many characters an agent's name may have.
const maxAgentName = 64

var agentName = regexp.MustCompile(`^[\pL\pN][\pL\pN ._-]{0,63}$`)

// How many agents there may be. Each has a rate, runs, results and sessions of its own, so they bound all of those.
const (
	maxUserAgents = 100  // live ones of one user
	maxOrgAgents  = 5000 // live ones of an organisation
	maxAgentsADay = 200  // that one user makes, revoked or not: their rows stay
)

// room refuses one more agent of a user who has as many as one may; the operator is not held to it. Agents of one user
// are made one after the other, so that none is counted too late.
func (tx *Tx) room(ctx context.Context, user UserID) error {
	if tx.caller.Via == ViaCLI {
		return nil
	}
	if _, err := value[UserID](ctx, tx.tx, `SELECT user_id FROM member WHERE user_id = @user FOR NO KEY UPDATE`,
		pgx.StrictNamedArgs{"user": user}); err != nil {
		return err
	}
	n, err := one[struct{ Own, All, Today int }](ctx, tx.tx, `
		SELECT count(*) FILTER (WHERE user_id = @user AND revoked_at IS NULL) AS own, count(*) FILTER (WHERE revoked_at IS NULL) AS all,
		       count(*) FILTER (WHERE user_id = @user AND created_at > @day) AS today
		FROM agent`, pgx.StrictNamedArgs{"user": user, "day": tx.now.Add(-24 * time.Hour)})
	switch {
	case err != nil:
		return err
	case n.Own >= maxUserAgents:
		return reason.Refuse(reason.InputInvalid, "One person has at most %d live agents. Revoke one that is no longer needed.", maxUserAgents).Field("name")
	case n.All >= maxOrgAgents:
		return reason.Refuse(reason.InputInvalid, "An organisation has at most %d live agents. Revoke one that is no longer needed.", maxOrgAgents).Field("name")
	case n.Today >= maxAgentsADay:
		return reason.Refuse(reason.RateLimited, "One person makes at most %d agents in 24 hours. Try again tomorrow.", maxAgentsADay).Field("name")
	}
	return nil
}

// CreateAgent makes an agent for user with its static token, which is returned once and kept as a hash. A name
// that a live agent has, without case, is reason.NameTaken, and more than there may be are refused; a user who is no live
// member is reason.NotFound, and one whose role only reads is reason.Forbidden.
func (tx *Tx) CreateAgent(ctx context.Context, name string, user UserID) (Agent, string, error) {
	id, err := tx.insertAgent(ctx, name, user, true)
	if err != nil {
		return Agent{}, "", err
	}
	token, err := tx.RenewAgentToken(ctx, id)
	if err != nil {
		return Agent{}, "", err
	}
	a, err := tx.Agent(ctx, id)
	return a, token, err
}

// insertAgent makes an agent that nothing resolves to yet. Its errors are those of CreateAgent.
func (tx *Tx) insertAgent(ctx context.Context, name string, user UserID, advanced bool) (AgentID, error) {
	if !tx.caller.MayMakeAgents() || !tx.caller.MayChange(user) {
		return AgentID{}, reason.Refuse(reason.Forbidden, "Your role cannot make agents. Ask an admin of the organisation.")
	}
	if !agentName.MatchString(name) {
		return AgentID{}, reason.Refuse(reason.InputInvalid,
			"Use 1 to 64 letters, digits, spaces, dots, hyphens or underscores, a letter or digit first.").Field("name")
	}
	if err := tx.room(ctx, user); err != nil {
		return AgentID{}, err
	}
	id := NewID[AgentKind](tx.now)
	n, err := exec(ctx, tx.tx, `
		INSERT INTO agent (id, user_id, name, advanced_tools, created_at)
		SELECT @id, user_id, @name, @advanced, @now FROM member WHERE user_id = @user AND removed_at IS NULL AND role <> 'auditor'
		ON CONFLICT (org_id, lower(name)) WHERE revoked_at IS NULL DO NOTHING`,
		pgx.StrictNamedArgs{"id": id, "user": user, "name": name, "advanced": advanced, "now": tx.now})
	if err == nil && n == 0 {
		err = tx.whyNoAgent(ctx, name, user)
	}
	return id, err
}

// whyNoAgent is why CreateAgent made none.
func (tx *Tx) whyNoAgent(ctx context.Context, name string, user UserID) error {
	maker, err := one[struct {
		Email string
		Role  Role
	}](ctx, tx.tx, `
		SELECT u.email, m.role FROM member m JOIN user_account u ON u.id = m.user_id
		WHERE m.user_id = @user AND m.removed_at IS NULL`, pgx.StrictNamedArgs{"user": user})
	if err != nil {
		return err
	}
	if maker.Role == RoleAuditor {
		return reason.Refuse(reason.Forbidden, "%s is an auditor, who reads only.", maker.Email)
	}
	// In the caller's own spelling: the agent may be another member's, whom the caller does not see.
	return reason.Refuse(reason.NameTaken, "A live agent is called %q already. Choose another name.", name).Field("name")
}

// RenewAgentToken ends the agent's static token, if it has one, and makes a new one. It is returned once.
func (tx *Tx) RenewAgentToken(ctx context.Context, id AgentID) (string, error) {
	if err := tx.lockLiveAgent(ctx, id); err != nil {
		return "", err
	}
	ended, err := tx.endAgentTokens(ctx, id)
	if err != nil {
		return "", err
	}
	if ended {
		if err := tx.tell(ctx, bus.Credential, id.String()); err != nil {
			return "", err
		}
	}
	token, hash := NewToken(StaticTokenPrefix)
	_, err = exec(ctx, tx.tx, `
		INSERT INTO agent_token (id, agent_id, hash, hint, created_at)
		VALUES (@id, @agent, @hash, @hint, @now)`,
		pgx.StrictNamedArgs{"id": NewID[TokenKind](tx.now), "agent": id, "hash": hash[:], "hint": hint(token), "now": tx.now})
	return token, err
}

// RevokeAgent ends the agent and its tokens. Its row and its history stay. One that is revoked already is
// reason.NotFound.
func (tx *Tx) RevokeAgent(ctx context.Context, id AgentID) error {
	if err := tx.lockLiveAgent(ctx, id); err != nil {
		return err
	}
	if _, err := tx.endAgentTokens(ctx, id); err != nil {
		return err
	}
	if err := tx.endGrantsOf(ctx, id); err != nil {
		return err
	}
	if _, err := exec(ctx, tx.tx, `UPDATE agent SET revoked_at = @now, revoked_by = @by WHERE id = @id`,
		pgx.StrictNamedArgs{"id": id, "by": tx.caller.User, "now": tx.now}); err != nil {
		return err
	}
	return tx.tell(ctx, bus.Revoked, id.String())
}

// see refuses an agent that the caller may not read, as if it were missing. An agent sees itself unasked.
func (tx *Tx) see(ctx context.Context, id AgentID) error {
	if tx.isSelf(id) {
		return nil
	}
	user, err := value[UserID](ctx, tx.tx, `SELECT user_id FROM agent WHERE id = @id`, pgx.StrictNamedArgs{"id": id})
	if err == nil && !tx.caller.maySee(user) {
		return reason.NotFound
	}
	return err
}

// use refuses an agent that the caller neither is nor may change.
func (tx *Tx) use(ctx context.Context, id AgentID) error {
	if tx.isSelf(id) {
		return nil
	}
	return tx.lockLiveAgent(ctx, id)
}

func (tx *Tx) isSelf(id AgentID) bool { return tx.caller.Via == ViaBearer && tx.caller.Agent == id }

// lockLiveAgent holds the agent's row for this transaction, so that a renewal and a revocation of one agent go one
// after the other. An agent the caller cannot see, or that is revoked, is reason.NotFound.
func (tx *Tx) lockLiveAgent(ctx context.Context, id AgentID) error {
	user, err := value[UserID](ctx, tx.tx, `SELECT user_id FROM agent WHERE id = @id AND revoked_at IS NULL FOR UPDATE`,
		pgx.StrictNamedArgs{"id": id})
	if err != nil {
		return err
	}
	if tx.caller.MayChange(user) {
		return nil
	}
	if tx.caller.maySee(user) {
		return reason.Refuse(reason.Forbidden, "Your role reads only. Ask an admin of the organisation.")
	}
	return reason.NotFound
}

// endAgentTokens ends the agent's token and reports whether it had one.
func (tx *Tx) endAgentTokens(ctx context.Context, id AgentID) (ended bool, err error) {
	n, err := exec(ctx, tx.tx, `UPDATE agent_token SET ended_at = @now WHERE agent_id = @id AND ended_at IS NULL`,
		pgx.StrictNamedArgs{"id": id, "now": tx.now})
	return n > 0, err
}

// TouchAgents moves the last use of agents forward.
func (tx *Tx) TouchAgents(ctx context.Context, used map[AgentID]time.Time) error {
	if len(used) == 0 {
		return nil
	}
	ids, times := columns(used)
	_, err := exec(ctx, tx.tx, `
		WITH held AS (
			SELECT a.id, used.at FROM agent a JOIN unnest(@ids::uuid[], @times::timestamptz[]) AS used (id, at) USING (id)
			WHERE a.last_used_at IS NULL OR a.last_used_at < used.at ORDER BY a.id FOR NO KEY UPDATE OF a
		)
		UPDATE agent a SET last_used_at = held.at FROM held WHERE a.id = held.id AND (a.last_used_at IS NULL OR a.last_used_at < held.at)`,
		pgx.StrictNamedArgs{"ids": ids, "times": times})
	return err
}

// AgentLives reports whether the agent is there and not revoked, and its maker still a member.
func (tx *Tx) AgentLives(ctx context.Context, id AgentID) (bool, error) {
	return value[bool](ctx, tx.tx, `
		SELECT EXISTS (
			SELECT FROM agent a JOIN member m ON m.user_id = a.user_id
			WHERE a.id = @id AND a.revoked_at IS NULL AND m.removed_at IS NULL)`, pgx.StrictNamedArgs{"id": id})
}
