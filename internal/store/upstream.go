package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/reason"
)

// An Upstream is an MCP server that we are a client of.
type Upstream struct {
	ID             UpstreamID
	Name           string // what its tools' wire names begin with
	URL            string
	TrustHints     bool     // what it says of a tool's effects is believed
	IncludeTools   []string // its own names; none: all
	ExcludeTools   []string // wins
	ListAll        *bool    // whether agents are shown all its tools; nil until it was listed
	ConnectSeconds int32
	CallSeconds    int32
	CreatedAt      time.Time
	CreatedBy      string // name or e-mail; "" when the CLI did
	RevokedAt      *time.Time
	RevokedBy      string
	State          string // new, ok or failing: how the last listing ended
	LastListedAt   *time.Time
	LastErrorWord  string       // a reason word; "" while it is well
	LastError      string       // our sentence
	Connection     ConnectionID // the one it is reached by
	Headers        []string     // their names
	Unset          []string     // secrets that its headers name and that are not set
	Tools          int          // that it offers
	LeftOut        int          // that it lists and we do not offer
}

// The states of an upstream.
const (
	UpstreamNew     = "new"
	UpstreamOK      = "ok"
	UpstreamFailing = "failing"
)

const upstreamColumns = `
	p.id, p.name, p.url, p.trust_hints, p.include_tools, p.exclude_tools, p.list_all, p.connect_seconds, p.call_seconds, p.created_at,
	coalesce(nullif(u.name, ''), u.email, '') AS created_by, p.revoked_at, coalesce(nullif(r.name, ''), r.email, '') AS revoked_by,
	p.state, p.last_listed_at, p.last_error_word, p.last_error, c.id AS connection,
	ARRAY(SELECT h.name FROM upstream_header h WHERE h.upstream_id = p.id ORDER BY h.name) AS headers,
	ARRAY(SELECT DISTINCT n FROM upstream_header h, unnest(h.secrets) AS n
	      WHERE h.upstream_id = p.id AND NOT EXISTS (SELECT FROM secret s WHERE s.name = n) ORDER BY n) AS unset,
	(SELECT count(*) FROM upstream_tool t WHERE t.upstream_id = p.id AND t.gone_at IS NULL AND t.left_out = '') AS tools,
	(SELECT count(*) FROM upstream_tool t WHERE t.upstream_id = p.id AND t.gone_at IS NULL AND t.left_out <> '') AS left_out
	FROM upstream p
	JOIN connection c ON c.upstream_id = p.id AND c.user_id IS NULL
	LEFT JOIN user_account u ON u.id = p.created_by
	LEFT JOIN user_account r ON r.id = p.revoked_by`

// Upstreams lists the organisation's upstreams, live ones first, by name.
func (tx *Tx) Upstreams(ctx context.Context) ([]Upstream, error) {
	return all[Upstream](ctx, tx.tx, `SELECT `+upstreamColumns+` ORDER BY p.revoked_at IS NOT NULL, p.name, p.id`, nil)
}

// Upstream is one upstream, revoked or not.
func (tx *Tx) Upstream(ctx context.Context, id UpstreamID) (Upstream, error) {
	return one[Upstream](ctx, tx.tx, `SELECT `+upstreamColumns+` WHERE p.id = @id`, pgx.StrictNamedArgs{"id": id})
}

// UpstreamByName is a live upstream.
func (tx *Tx) UpstreamByName(ctx context.Context, name string) (Upstream, error) {
	return one[Upstream](ctx, tx.tx, `SELECT `+upstreamColumns+` WHERE p.name = @name AND p.revoked_at IS NULL`, pgx.StrictNamedArgs{"name": name})
}

// UpstreamSettings are what may be changed of an upstream once it is there.
type UpstreamSettings struct {
	TrustHints     bool
	IncludeTools   []string
	ExcludeTools   []string
	ListAll        *bool // nil: yes where it has few tools
	ConnectSeconds int32 // 1 to 60
	CallSeconds    int32 // 1 to 3600
}

// An UpstreamHeader is sent with every request to an upstream.
type UpstreamHeader struct {
	Name    string
	Secrets []string // that its template names
	// Seal returns the template, sealed for its place.
	Seal func(UpstreamID) ([]byte, error)
}

// maxUpstreams bounds the live upstreams of an organisation.
const maxUpstreams = 200

// CreateUpstream makes an upstream and the one connection, shared, that it is reached by. The name is one that
// catalog.CheckVendor lets through; one that a live upstream or connection has is reason.NameTaken.
func (tx *Tx) CreateUpstream(ctx context.Context, name, url string, in UpstreamSettings, headers []UpstreamHeader) (Upstream, error) {
	if err := tx.mayManage(); err != nil {
		return Upstream{}, err
	}
	if err := in.check(); err != nil {
		return Upstream{}, err
	}
	live, err := value[int](ctx, tx.tx, `SELECT count(*) FROM upstream WHERE revoked_at IS NULL`, nil)
	if err != nil {
		return Upstream{}, err
	}
	if live >= maxUpstreams {
		return Upstream{}, reason.Refuse(reason.InputInvalid, "An organisation has at most %d upstreams. Remove one first.", maxUpstreams)
	}
	id := NewID[UpstreamKind](tx.now)
	n, err := exec(ctx, tx.tx, `
		INSERT INTO upstream (id, name, url, trust_hints, include_tools, exclude_tools, list_all, connect_seconds, call_seconds, created_at, created_by, state)
		SELECT @id, @name, @url, @trust, @include, @exclude, @all, @connect, @call, @now, @by, 'new'
		WHERE NOT EXISTS (SELECT FROM connection WHERE vendor = @name AND revoked_at IS NULL)
		ON CONFLICT (org_id, name) WHERE revoked_at IS NULL DO NOTHING`,
		pgx.StrictNamedArgs{
			"id": id, "name": name, "url": url, "trust": in.TrustHints, "include": some(in.IncludeTools), "exclude": some(in.ExcludeTools),
			"all": in.ListAll, "connect": in.ConnectSeconds, "call": in.CallSeconds, "now": tx.now, "by": tx.caller.User,
		})
	if err == nil && n == 0 {
		err = reason.Refuse(reason.NameTaken, "An upstream or a connection is called %q already. Choose another name.", name).Field("name")
	}
	if err != nil {
		return Upstream{}, err
	}
	if err := tx.addHeaders(ctx, id, headers); err != nil {
		return Upstream{}, err
	}
	if _, err := exec(ctx, tx.tx, `
		INSERT INTO connection (id, vendor, display_name, upstream_id, created_at) VALUES (@id, @name, @name, @upstream, @now)`,
		pgx.StrictNamedArgs{"id": NewID[ConnectionKind](tx.now), "name": name, "upstream": id, "now": tx.now}); err != nil {
		return Upstream{}, err
	}
	if err := tx.toolsMoved(ctx); err != nil {
		return Upstream{}, err
	}
	return tx.Upstream(ctx, id)
}

func (in UpstreamSettings) check() error {
	switch {
	case in.ConnectSeconds < 1 || in.ConnectSeconds > 60:
		return reason.Refuse(reason.InputInvalid, "Connecting takes from 1 to 60 seconds at most.").Field("connectSeconds")
	case in.CallSeconds < 1 || in.CallSeconds > 3600:
		return reason.Refuse(reason.InputInvalid, "A call takes from 1 second to an hour at most.").Field("callSeconds")
	}
	for field, list := range map[string][]string{"include": in.IncludeTools, "exclude": in.ExcludeTools} {
		for _, name := range list {
			if len(name) > 256 || len(list) > 5000 {
				return reason.Refuse(reason.InputInvalid, "List at most 5,000 tools, each by its name of at most 256 characters.").Field(field)
			}
			if err := CheckName(field, name, 256); err != nil {
				return err
			}
		}
	}
	return nil
}

// ChangeUpstream replaces the settings of a live upstream. What of its tools is offered follows when it is next listed.
func (tx *Tx) ChangeUpstream(ctx context.Context, id UpstreamID, in UpstreamSettings) error {
	if err := in.check(); err != nil {
		return err
	}
	if err := tx.lockLiveUpstream(ctx, id); err != nil {
		return err
	}
	if _, err := exec(ctx, tx.tx, `
		UPDATE upstream SET trust_hints = @trust, include_tools = @include, exclude_tools = @exclude, list_all = coalesce(@all, list_all),
		                    connect_seconds = @connect, call_seconds = @call
		WHERE id = @id`,
		pgx.StrictNamedArgs{
			"id": id, "trust": in.TrustHints, "include": some(in.IncludeTools), "exclude": some(in.ExcludeTools),
			"all": in.ListAll, "connect": in.ConnectSeconds, "call": in.CallSeconds,
		}); err != nil {
		return err
	}
	return tx.toolsMoved(ctx)
}

// SetUpstreamHeaders replaces the headers of a live upstream. Every session that was opened with the old ones ends.
func (tx *Tx) SetUpstreamHeaders(ctx context.Context, id UpstreamID, headers []UpstreamHeader) error {
	if err := tx.lockLiveUpstream(ctx, id); err != nil {
		return err
	}
	if _, err := exec(ctx, tx.tx, `DELETE FROM upstream_header WHERE upstream_id = @id`, pgx.StrictNamedArgs{"id": id}); err != nil {
		return err
	}
	if err := tx.addHeaders(ctx, id, headers); err != nil {
		return err
	}
	return tx.toolsMoved(ctx)
}

func (tx *Tx) addHeaders(ctx context.Context, id UpstreamID, headers []UpstreamHeader) error {
	for _, h := range headers {
		sealed, err := h.Seal(id)
		if err != nil {
			return err
		}
		n, err := exec(ctx, tx.tx, `
			INSERT INTO upstream_header (upstream_id, name, template, secrets, set_at) VALUES (@id, @name, @template, @secrets, @now)
			ON CONFLICT DO NOTHING`,
			pgx.StrictNamedArgs{"id": id, "name": h.Name, "template": sealed, "secrets": some(h.Secrets), "now": tx.now})
		if err == nil && n == 0 {
			err = reason.Refuse(reason.InputInvalid, "The header %s is given twice.", h.Name).Field("header")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// RevokeUpstream ends an upstream with its connection, and destroys its headers. Its row and its tools' stay. One that
// is revoked already is reason.NotFound.
func (tx *Tx) RevokeUpstream(ctx context.Context, id UpstreamID) error {
	if err := tx.lockLiveUpstream(ctx, id); err != nil {
		return err
	}
	args := pgx.StrictNamedArgs{"id": id}
	if _, err := exec(ctx, tx.tx, `DELETE FROM upstream_header WHERE upstream_id = @id`, args); err != nil {
		return err
	}
	if _, err := exec(ctx, tx.tx, `DELETE FROM agent_upstream WHERE upstream_id = @id`, args); err != nil {
		return err
	}
	if _, err := exec(ctx, tx.tx, `UPDATE upstream SET revoked_at = @now, revoked_by = @by WHERE id = @id`,
		pgx.StrictNamedArgs{"id": id, "by": tx.caller.User, "now": tx.now}); err != nil {
		return err
	}
	if _, err := exec(ctx, tx.tx, `UPDATE connection SET revoked_at = @now WHERE upstream_id = @id AND revoked_at IS NULL`,
		pgx.StrictNamedArgs{"id": id, "now": tx.now}); err != nil {
		return err
	}
	return tx.toolsMoved(ctx)
}

// lockLiveUpstream holds the upstream's row for this transaction, for whoever may change it.
func (tx *Tx) lockLiveUpstream(ctx context.Context, id UpstreamID) error {
	if err := tx.mayManage(); err != nil {
		return err
	}
	return tx.holdUpstream(ctx, id)
}

func (tx *Tx) holdUpstream(ctx context.Context, id UpstreamID) error {
	_, err := value[UpstreamID](ctx, tx.tx, `SELECT id FROM upstream WHERE id = @id AND revoked_at IS NULL FOR UPDATE`, pgx.StrictNamedArgs{"id": id})
	return err
}

// SetPassthrough binds an agent to one live upstream, whose list is then the agent's, or to none with the zero id.
func (tx *Tx) SetPassthrough(ctx context.Context, agent AgentID, upstream UpstreamID) error {
	if err := tx.lockLiveAgent(ctx, agent); err != nil {
		return err
	}
	if !upstream.IsZero() {
		if _, err := value[UpstreamID](ctx, tx.tx, `SELECT id FROM upstream WHERE id = @id AND revoked_at IS NULL FOR SHARE`,
			pgx.StrictNamedArgs{"id": upstream}); err != nil {
			return err
		}
	}
	if _, err := exec(ctx, tx.tx, `UPDATE agent SET passthrough = @upstream WHERE id = @id`,
		pgx.StrictNamedArgs{"id": agent, "upstream": upstream}); err != nil {
		return err
	}
	return tx.tell(ctx, bus.List, agent.String())
}

// SetListAll says whether the agent is shown all tools of an upstream, whatever the upstream's own setting.
func (tx *Tx) SetListAll(ctx context.Context, agent AgentID, upstream UpstreamID, on bool) error {
	if err := tx.lockLiveAgent(ctx, agent); err != nil {
		return err
	}
	if _, err := exec(ctx, tx.tx, `
		INSERT INTO agent_upstream (agent_id, upstream_id, list_all) VALUES (@agent, @upstream, @on)
		ON CONFLICT (org_id, agent_id, upstream_id) DO UPDATE SET list_all = excluded.list_all`,
		pgx.StrictNamedArgs{"agent": agent, "upstream": upstream, "on": on}); err != nil {
		return err
	}
	return tx.tell(ctx, bus.List, agent.String())
}

// AgentUpstreams says which live upstreams an agent sees how.
type AgentUpstreams struct {
	Passthrough string   // the name of the one it is bound to; "" for none
	Listed      []string // the names of those all of whose tools it is shown, in order
}

// AgentUpstreams reads how an agent sees upstreams. One that is bound to an upstream that was revoked since stays bound
// to its name, and sees nothing.
func (tx *Tx) AgentUpstreams(ctx context.Context, agent AgentID) (AgentUpstreams, error) {
	return one[AgentUpstreams](ctx, tx.tx, `
		SELECT coalesce(b.name, '') AS passthrough,
		       ARRAY(SELECT p.name FROM upstream p LEFT JOIN agent_upstream x ON x.upstream_id = p.id AND x.agent_id = a.id
		             WHERE p.revoked_at IS NULL AND coalesce(x.list_all, p.list_all, false)
		             ORDER BY p.name COLLATE "C") AS listed
		FROM agent a LEFT JOIN upstream b ON b.id = a.passthrough
		WHERE a.id = @agent`, pgx.StrictNamedArgs{"agent": agent})
}
