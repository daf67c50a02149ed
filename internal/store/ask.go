package store

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/reason"
)

// AskLife is how long an ask waits for its answer, and an answer for one call waits for that call.
const AskLife = 24 * time.Hour

// maxOpenAsks bounds what an agent may ask its people at one time.
const maxOpenAsks = 200

// AskTopic is what an ask is about.
type AskTopic string

// The topics.
const (
	AskApproval   AskTopic = "approval"   // whether an agent may run a tool
	AskConnection AskTopic = "connection" // for an account of a vendor
	AskCredential AskTopic = "credential" // for the credential of a connection that is there
	AskScope      AskTopic = "scope"      // whether an agent may use a connection that is there
)

// AskState is where an ask stands.
type AskState string

// The states. Expired is also what an open ask is once its time is over.
const (
	AskOpen      AskState = "open"
	AskAllowed   AskState = "allowed"
	AskDenied    AskState = "denied"
	AskWithdrawn AskState = "withdrawn"
	AskExpired   AskState = "expired"
)

// An Ask is something only a person can settle.
type Ask struct {
	ID           AskID
	Kind         AskTopic
	AgentID      AgentID
	AgentName    string // of the agent; not stored here
	Tool         string // wire name
	Version      int
	ConnectionID ConnectionID
	Key          []byte // SHA-256 of what is asked
	Digest       []byte // of the arguments
	Every        bool   // an answer is for one call of exactly this digest
	Mark         string // stands in the link
	Body         []byte // sealed: what the person is shown
	State        AskState
	CreatedAt    time.Time
	ExpiresAt    time.Time
	AnsweredAt   *time.Time
	AnsweredBy   string // name of who answered; not stored here
	ConsumedAt   *time.Time
}

// Marked reports whether mark is the one in the ask's link.
func (a Ask) Marked(mark string) bool {
	return subtle.ConstantTimeCompare([]byte(a.Mark), []byte(mark)) == 1
}

const askColumns = `k.id, k.kind, k.agent_id, a.name AS agent_name, k.tool, k.version, k.connection_id, k.key, k.digest, k.every, k.mark, k.body,
	CASE WHEN k.state = 'open' AND k.expires_at <= @now THEN 'expired' ELSE k.state END AS state,
	k.created_at, k.expires_at, k.answered_at, coalesce(nullif(u.name, ''), u.email, CASE WHEN k.answered_at IS NULL THEN '' ELSE 'the operator' END) AS answered_by,
	k.consumed_at`

const askTables = `ask k JOIN agent a ON a.id = k.agent_id LEFT JOIN user_account u ON u.id = k.answered_by`

// OpenAsk makes an ask for the calling agent, or returns the open one about the same thing; id is new, and seal makes
// the body for the id that the ask has. More open asks than one agent may have are reason.RateLimited.
func (tx *Tx) OpenAsk(ctx context.Context, a Ask, seal func(AskID) []byte) (Ask, error) {
	if err := tx.use(ctx, a.AgentID); err != nil {
		return Ask{}, err
	}
	if _, err := exec(ctx, tx.tx, `UPDATE ask SET state = 'expired' WHERE key = @key AND state = 'open' AND expires_at <= @now`,
		pgx.StrictNamedArgs{"key": a.Key, "now": tx.now}); err != nil {
		return Ask{}, err
	}
	open, err := tx.openAsk(ctx, a.Key)
	if !IsAbsent(err) {
		return open, err
	}
	n, err := value[int](ctx, tx.tx, `SELECT count(*)::int FROM ask WHERE agent_id = @agent AND state = 'open' AND expires_at > @now`,
		pgx.StrictNamedArgs{"agent": a.AgentID, "now": tx.now})
	if err != nil {
		return Ask{}, err
	}
	if n >= maxOpenAsks {
		return Ask{}, reason.Refuse(reason.RateLimited, "This agent has %d open asks. A person answers some of them first.", n)
	}
	a.ID = NewID[AskKind](tx.now)
	if _, err := exec(ctx, tx.tx, `
		INSERT INTO ask (id, kind, agent_id, tool, version, connection_id, key, digest, every, mark, body, state, created_at, expires_at)
		VALUES (@id, @kind, @agent, @tool, @version, @connection, @key, @digest, @every, @mark, @body, 'open', @now, @expires)
		ON CONFLICT (org_id, key) WHERE state = 'open' DO NOTHING`,
		pgx.StrictNamedArgs{
			"id": a.ID, "kind": a.Kind, "agent": a.AgentID, "tool": a.Tool, "version": a.Version, "connection": a.ConnectionID, "key": a.Key,
			"digest": a.Digest, "every": a.Every, "mark": rand.Text(), "body": seal(a.ID), "now": tx.now, "expires": tx.now.Add(AskLife),
		}); err != nil {
		return Ask{}, err
	}
	return tx.openAsk(ctx, a.Key)
}

func (tx *Tx) openAsk(ctx context.Context, key []byte) (Ask, error) {
	return one[Ask](ctx, tx.tx, `SELECT `+askColumns+` FROM `+askTables+` WHERE k.key = @key AND k.state = 'open'`,
		pgx.StrictNamedArgs{"key": key, "now": tx.now})
}

// Ask is one ask, for whoever may answer it. Anybody else, like a missing one, is reason.NotFound.
func (tx *Tx) Ask(ctx context.Context, id AskID) (Ask, error) {
	a, err := one[Ask](ctx, tx.tx, `SELECT `+askColumns+` FROM `+askTables+` WHERE k.id = @id`, pgx.StrictNamedArgs{"id": id, "now": tx.now})
	if err != nil {
		return Ask{}, err
	}
	return a, tx.mayAnswer(ctx, a.AgentID)
}

// mayAnswer refuses who is neither the agent's user nor an admin.
func (tx *Tx) mayAnswer(ctx context.Context, agent AgentID) error {
	user, err := value[UserID](ctx, tx.tx, `SELECT user_id FROM agent WHERE id = @id`, pgx.StrictNamedArgs{"id": agent})
	if err == nil && !tx.caller.MayChange(user) {
		return reason.NotFound
	}
	return err
}

// maxAsks is how many asks one list holds.
const maxAsks = 200

// OpenAsks lists what waits for the caller, newest first, at most 200.
func (tx *Tx) OpenAsks(ctx context.Context) ([]Ask, error) {
	return all[Ask](ctx, tx.tx, `SELECT `+askColumns+` FROM `+askTables+`
		WHERE k.state = 'open' AND k.expires_at > @now AND a.revoked_at IS NULL AND (@manages OR a.user_id = @user)
		ORDER BY k.created_at DESC, k.id LIMIT @most`, tx.answerable(pgx.StrictNamedArgs{"most": maxAsks}))
}

// CountOpenAsks is how many asks wait for the caller.
func (tx *Tx) CountOpenAsks(ctx context.Context) (int, error) {
	return value[int](ctx, tx.tx, `
		SELECT count(*)::int FROM ask k JOIN agent a ON a.id = k.agent_id
		WHERE k.state = 'open' AND k.expires_at > @now AND a.revoked_at IS NULL AND (@manages OR a.user_id = @user)`,
		tx.answerable(pgx.StrictNamedArgs{}))
}

// answerable adds to args who the caller is to asks. An auditor's own agents do not ask them.
func (tx *Tx) answerable(args pgx.StrictNamedArgs) pgx.StrictNamedArgs {
	args["now"], args["manages"], args["user"] = tx.now, tx.caller.manages(), tx.caller.User
	if !tx.caller.MayMakeAgents() {
		args["user"] = UserID{}
	}
	return args
}

// AnswerAsk answers an open approval, and no other kind. Allowing one that is not for every call stands for all later calls of the tool's
// version; every keeps asking; denying stands for the tool, unless the ask was for one call. An ask that is answered,
// withdrawn or over is reason.ApprovalExpired, as it stands.
func (tx *Tx) AnswerAsk(ctx context.Context, id AskID, allow, every bool) (Ask, error) {
	a, err := tx.Ask(ctx, id)
	if err != nil {
		return Ask{}, err
	}
	if err := tx.lockLiveAgent(ctx, a.AgentID); err != nil {
		return Ask{}, err
	}
	if a.Kind != AskApproval {
		return Ask{}, fmt.Errorf("store: %s asks for a %s, which is not answered so", id, a.Kind)
	}
	answered, err := tx.close(ctx, id, allow, every, a.ConnectionID)
	if err != nil {
		return answered, err
	}
	return answered, tx.standing(ctx, a, allow, every)
}

// close answers an open ask, once.
func (tx *Tx) close(ctx context.Context, id AskID, allow, every bool, connection ConnectionID) (Ask, error) {
	state := AskDenied
	if allow {
		state = AskAllowed
	}
	n, err := exec(ctx, tx.tx, `
		UPDATE ask SET state = @state, every = every OR @every, connection_id = @connection, answered_at = @now, answered_by = @by, expires_at = @expires
		WHERE id = @id AND state = 'open' AND expires_at > @now`,
		pgx.StrictNamedArgs{
			"id": id, "state": state, "every": every, "connection": connection, "now": tx.now, "by": tx.caller.User, "expires": tx.now.Add(AskLife),
		})
	if err != nil {
		return Ask{}, err
	}
	a, err := tx.Ask(ctx, id)
	if err != nil {
		return Ask{}, err
	}
	if n == 0 {
		return a, reason.Refuse(reason.ApprovalExpired, "This ask is %s already, so nothing was changed.", a.State)
	}
	return a, tx.tell(ctx, bus.Ask, id.String())
}

// DeclineAsk says no to an ask for a connection, a credential or a scope, which stands for nothing: asked again, it is a new ask.
func (tx *Tx) DeclineAsk(ctx context.Context, id AskID) (Ask, error) {
	a, err := tx.lockAsk(ctx, id)
	if err != nil {
		return Ask{}, err
	}
	return tx.close(ctx, id, false, false, a.ConnectionID)
}

// FulfilAsk answers an ask for a connection, a credential or a scope with the connection that there is now, which is in its agent's
// scope from then on. What made or mended the connection is done in the same transaction.
func (tx *Tx) FulfilAsk(ctx context.Context, id AskID, connection ConnectionID) (Ask, error) {
	a, err := tx.lockAsk(ctx, id)
	if err != nil {
		return Ask{}, err
	}
	if !a.ConnectionID.IsZero() && a.ConnectionID != connection {
		return Ask{}, reason.NotFound
	}
	if a, err = tx.close(ctx, id, true, false, connection); err != nil {
		return a, err
	}
	return a, tx.addToScope(ctx, a.AgentID, connection)
}

// lockAsk holds the agent of an ask that is no approval, so that its revocation and an answer go one after the other.
func (tx *Tx) lockAsk(ctx context.Context, id AskID) (Ask, error) {
	a, err := tx.Ask(ctx, id)
	if err != nil {
		return Ask{}, err
	}
	if a.Kind == AskApproval {
		return Ask{}, fmt.Errorf("store: %s is an approval", id)
	}
	return a, tx.lockLiveAgent(ctx, a.AgentID)
}

// TakeNo uses up a no that the calling agent was answered to what has that key, and reports whether there was one: it is told once.
func (tx *Tx) TakeNo(ctx context.Context, agent AgentID, key []byte) (bool, error) {
	if err := tx.use(ctx, agent); err != nil {
		return false, err
	}
	n, err := exec(ctx, tx.tx, `
		UPDATE ask SET consumed_at = @now
		WHERE id = (SELECT id FROM ask WHERE agent_id = @agent AND key = @key AND state = 'denied' AND consumed_at IS NULL AND expires_at > @now
		            ORDER BY answered_at DESC LIMIT 1 FOR UPDATE SKIP LOCKED)`,
		pgx.StrictNamedArgs{"agent": agent, "key": key, "now": tx.now})
	return n == 1, err
}

// standing sets what an answer means for later calls.
func (tx *Tx) standing(ctx context.Context, a Ask, allow, every bool) error {
	d := Deny
	switch {
	case allow && (every || a.Every):
		d = AskEvery
	case allow:
		d = Allow
	case a.Every:
		return nil // a no to one call of a tool that asks every time
	}
	return tx.approve(ctx, a.AgentID, Approval{Tool: a.Tool, ConnectionID: a.ConnectionID, Version: a.Version, Decision: d})
}

// TakeAnswer uses up the answer that waits for exactly the call that a describes (agent, tool, version, connection and
// digest), whoever of several such calls comes first. Without one it is reason.NotFound.
func (tx *Tx) TakeAnswer(ctx context.Context, a Ask, run RunID) (allowed bool, err error) {
	if err := tx.use(ctx, a.AgentID); err != nil {
		return false, err
	}
	state, err := value[AskState](ctx, tx.tx, `
		UPDATE ask SET consumed_at = @now, consumed_by = @run
		WHERE id = (SELECT id FROM ask
		            WHERE agent_id = @agent AND digest = @digest AND tool = @tool AND version = @version
		              AND connection_id IS NOT DISTINCT FROM @connection
		              AND every AND state IN ('allowed', 'denied') AND consumed_at IS NULL AND expires_at > @now
		            ORDER BY answered_at LIMIT 1 FOR UPDATE SKIP LOCKED)
		RETURNING state`,
		pgx.StrictNamedArgs{
			"agent": a.AgentID, "digest": a.Digest, "tool": a.Tool, "version": a.Version, "connection": a.ConnectionID, "run": run, "now": tx.now,
		})
	return state == AskAllowed, err
}
