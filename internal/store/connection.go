package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/reason"
)

// A Connection is one account of one vendor: where its requests may go, and how they are shown a credential.
type Connection struct {
	ID             ConnectionID
	Vendor         string
	DisplayName    string
	UserID         UserID // whose it is; zero: shared with the organisation
	UserName       string
	UpstreamID     UpstreamID // zero: of a vendor that is no MCP server
	Scheme         string     // of egress's table; "" of an upstream's
	Config         map[string]string
	Hosts          []string // as egress.ParseHosts takes them; the first is the primary one
	DocsURL        string
	Entered        bool // it has the credential that its scheme needs, or needs none
	Version        int  // of the credential
	SetAt          *time.Time
	SetBy          string // name or e-mail; "" when the CLI did, or nobody yet
	TokenExpiresAt *time.Time
	Health         string // unknown, ok or failing: what the vendor last said of the credential
	HealthWord     string // a reason word, while it is failing
	HealthAt       *time.Time
	LastUsedAt     *time.Time
	CreatedAt      time.Time
	CreatedBy      string
	RevokedAt      *time.Time
	RevokedBy      string
}

// The healths of a connection.
const (
	HealthUnknown = "unknown"
	HealthOK      = "ok"
	HealthFailing = "failing"
)

// Shared reports whether it belongs to the whole organisation.
func (c Connection) Shared() bool { return c.UserID.IsZero() }

// Status is how a connection stands: connected, incomplete, failing or revoked.
func (c Connection) Status() string {
	switch {
	case c.RevokedAt != nil:
		return "revoked"
	case !c.Entered:
		return "incomplete"
	case c.Health == HealthFailing:
		return HealthFailing
	}
	return "connected"
}

// NoScheme is the scheme that needs no credential.
const NoScheme = "none"

const connectionColumns = `
	c.id, c.vendor, c.display_name, c.user_id, coalesce(nullif(o.name, ''), o.email, '') AS user_name, c.upstream_id, c.scheme, c.config, c.hosts,
	c.docs_url, c.credential IS NOT NULL OR c.scheme IN ('', 'none') AS entered, c.version, c.set_at,
	coalesce(nullif(s.name, ''), s.email, '') AS set_by, c.token_expires_at, c.health, c.health_word, c.health_at, c.last_used_at, c.created_at,
	coalesce(nullif(b.name, ''), b.email, '') AS created_by, c.revoked_at, coalesce(nullif(r.name, ''), r.email, '') AS revoked_by
	FROM connection c
	LEFT JOIN user_account o ON o.id = c.user_id
	LEFT JOIN user_account s ON s.id = c.set_by
	LEFT JOIN user_account b ON b.id = c.created_by
	LEFT JOIN user_account r ON r.id = c.revoked_by `

// seen is which connections a caller may read: shared ones, their own, and with a role that sees all every one.
const seen = `(c.user_id IS NULL OR c.user_id = @user OR @sees_all) `

func (tx *Tx) seer(args pgx.StrictNamedArgs) pgx.StrictNamedArgs {
	args["user"], args["sees_all"] = tx.caller.User, tx.caller.seesAll()
	return args
}

// Connections lists the connections that the caller may read, upstreams' among them: live ones first, by vendor and name.
func (tx *Tx) Connections(ctx context.Context) ([]Connection, error) {
	return all[Connection](ctx, tx.tx, `SELECT `+connectionColumns+`WHERE `+seen+`
		ORDER BY c.revoked_at IS NOT NULL, c.vendor, c.display_name, c.id`, tx.seer(pgx.StrictNamedArgs{}))
}

// Connection is one connection that the caller may read, revoked or not.
func (tx *Tx) Connection(ctx context.Context, id ConnectionID) (Connection, error) {
	return one[Connection](ctx, tx.tx, `SELECT `+connectionColumns+`WHERE c.id = @id AND `+seen, tx.seer(pgx.StrictNamedArgs{"id": id}))
}

// A NewConnection is a connection to be. Its parts are as egress's table of schemes has checked them.
type NewConnection struct {
	Vendor      string // one that catalog.CheckVendor lets through
	DisplayName string
	Shared      bool
	Scheme      string
	Config      map[string]string
	Hosts       []string
	DocsURL     string
	Agent       AgentID // that it was asked for by, which may use it from then on; zero: none
	// Seal returns the credential, sealed for its place; nil where none is entered yet, or needed.
	Seal           func(ConnectionID) ([]byte, error)
	TokenExpiresAt *time.Time
}

// The most that an organisation has.
const (
	maxConnections = 1000
	maxDisplayName = 120
)

// CreateConnection makes a connection of the caller's own, or a shared one, which whoever manages the organisation makes. The vendor may
// be that of other connections, but of no upstream.
func (tx *Tx) CreateConnection(ctx context.Context, in NewConnection) (Connection, error) {
	if err := tx.mayConnect(in.Shared); err != nil {
		return Connection{}, err
	}
	if err := CheckName("displayName", in.DisplayName, maxDisplayName); err != nil {
		return Connection{}, err
	}
	live, err := value[int](ctx, tx.tx, `SELECT count(*)::int FROM connection WHERE revoked_at IS NULL`, nil)
	if err != nil {
		return Connection{}, err
	}
	if live >= maxConnections {
		return Connection{}, reason.Refuse(reason.InputInvalid, "An organisation has at most %d connections. Revoke one first.", maxConnections)
	}
	id := NewID[ConnectionKind](tx.now)
	user := tx.caller.User
	if in.Shared {
		user = UserID{}
	}
	var sealed []byte
	version, setAt, setBy := 0, (*time.Time)(nil), UserID{}
	if in.Seal != nil {
		if sealed, err = in.Seal(id); err != nil {
			return Connection{}, err
		}
		version, setAt, setBy = 1, &tx.now, tx.caller.User
	}
	config := in.Config
	if config == nil {
		config = map[string]string{}
	}
	n, err := exec(ctx, tx.tx, `
		INSERT INTO connection (id, vendor, display_name, user_id, scheme, config, hosts, docs_url, credential, version, set_at, set_by,
		                        token_expires_at, created_at, created_by)
		SELECT @id, @vendor, @name, @user, @scheme, @config, @hosts, @docs, @credential, @version, @set_at, @set_by, @expires, @now, @by
		WHERE NOT EXISTS (SELECT FROM upstream WHERE name = @vendor AND revoked_at IS NULL)`,
		pgx.StrictNamedArgs{
			"id": id, "vendor": in.Vendor, "name": in.DisplayName, "user": user, "scheme": in.Scheme, "config": config,
			"hosts": some(in.Hosts), "docs": in.DocsURL, "credential": sealed, "version": version, "set_at": setAt,
			"set_by": setBy, "expires": in.TokenExpiresAt, "now": tx.now, "by": tx.caller.User,
		})
	if err == nil && n == 0 {
		err = reason.Refuse(reason.NameTaken, "An upstream is called %q. Choose another name for the vendor.", in.Vendor).Field("vendor")
	}
	if err != nil {
		return Connection{}, err
	}
	if !in.Agent.IsZero() {
		if err := tx.addToScope(ctx, in.Agent, id); err != nil {
			return Connection{}, err
		}
	}
	if err := tx.toolsMoved(ctx); err != nil {
		return Connection{}, err
	}
	return tx.Connection(ctx, id)
}

// mayConnect refuses who may not make a connection of that kind.
func (tx *Tx) mayConnect(shared bool) error {
	if shared {
		return tx.mayManage()
	}
	if tx.caller.MayMakeAgents() && !tx.caller.User.IsZero() {
		return nil
	}
	if tx.caller.Via == ViaCLI || tx.caller.Via == ViaJob {
		return reason.Refuse(reason.InputInvalid, "What the operator connects is shared with the organisation.").Field("shared")
	}
	return reason.Refuse(reason.Forbidden, "Your role reads only. Ask an admin of the organisation.")
}

// holdConnection holds a connection's row for this transaction, for whoever may change it: a private one its owner alone, or, where
// destroying is all that is done to it, who manages the organisation.
func (tx *Tx) holdConnection(ctx context.Context, id ConnectionID, destroys bool) (Connection, error) {
	if _, err := value[ConnectionID](ctx, tx.tx, `SELECT id FROM connection WHERE id = @id AND upstream_id IS NULL FOR UPDATE`,
		pgx.StrictNamedArgs{"id": id}); err != nil {
		return Connection{}, err
	}
	c, err := tx.Connection(ctx, id)
	switch {
	case err != nil:
		return Connection{}, err
	case c.Shared() && tx.caller.manages(), !c.Shared() && tx.caller.MayChange(c.UserID) && (destroys || tx.caller.User == c.UserID):
		return c, nil
	case !c.Shared() && tx.caller.User != c.UserID && !tx.caller.seesAll():
		return Connection{}, reason.NotFound
	}
	return Connection{}, reason.Refuse(reason.Forbidden, "Only its owner enters the credential of a private connection; a shared one an admin or an owner of the organisation changes.")
}

// SetCredential replaces a connection's credential by one that a person entered, which brings a revoked one back: whoever used it before
// may again. seal is told the row that it is sealed for.
func (tx *Tx) SetCredential(ctx context.Context, id ConnectionID, seal func(ConnectionID) ([]byte, error), expires *time.Time) (Connection, error) {
	c, err := tx.holdConnection(ctx, id, false)
	if err != nil {
		return Connection{}, err
	}
	if c.Scheme == NoScheme {
		seal = func(ConnectionID) ([]byte, error) { return nil, nil }
	}
	sealed, err := seal(id)
	if err != nil {
		return Connection{}, err
	}
	if _, err := exec(ctx, tx.tx, `
		UPDATE connection SET credential = @credential, version = version + 1, set_at = @now, set_by = @by, token_expires_at = @expires,
		       refresh_until = NULL, health = 'unknown', health_word = '', health_at = NULL, revoked_at = NULL, revoked_by = NULL
		WHERE id = @id`,
		pgx.StrictNamedArgs{"id": id, "credential": sealed, "expires": expires, "now": tx.now, "by": tx.caller.User}); err != nil {
		return Connection{}, err
	}
	if err := tx.toolsMoved(ctx); err != nil {
		return Connection{}, err
	}
	return tx.Connection(ctx, id)
}

// RevokeConnection ends a connection and destroys its credential, and withdraws what is asked about it. Its row stays. One that is
// revoked already is reason.NotFound.
func (tx *Tx) RevokeConnection(ctx context.Context, id ConnectionID) (Connection, error) {
	c, err := tx.holdConnection(ctx, id, true)
	if err != nil {
		return Connection{}, err
	}
	if c.RevokedAt != nil {
		return Connection{}, reason.NotFound
	}
	if _, err := exec(ctx, tx.tx, `
		UPDATE connection SET revoked_at = @now, revoked_by = @by, credential = NULL, token_expires_at = NULL, refresh_until = NULL WHERE id = @id`,
		pgx.StrictNamedArgs{"id": id, "by": tx.caller.User, "now": tx.now}); err != nil {
		return Connection{}, err
	}
	if err := tx.withdrawAsksAbout(ctx, id); err != nil {
		return Connection{}, err
	}
	return c, tx.toolsMoved(ctx)
}

// revokeConnectionsOf ends the private connections of somebody who is being removed.
func (tx *Tx) revokeConnectionsOf(ctx context.Context, user UserID) error {
	_, err := exec(ctx, tx.tx, `
		UPDATE connection SET revoked_at = @now, revoked_by = @by, credential = NULL, token_expires_at = NULL, refresh_until = NULL
		WHERE user_id = @user AND revoked_at IS NULL`,
		pgx.StrictNamedArgs{"user": user, "by": tx.caller.User, "now": tx.now})
	return err
}

// withdrawAsksAbout ends what is asked about a connection.
func (tx *Tx) withdrawAsksAbout(ctx context.Context, id ConnectionID) error {
	asks, err := all[struct{ ID AskID }](ctx, tx.tx, `
		UPDATE ask SET state = 'withdrawn', answered_at = @now, expires_at = @expires WHERE connection_id = @id AND state = 'open' RETURNING id`,
		pgx.StrictNamedArgs{"id": id, "now": tx.now, "expires": tx.now.Add(AskLife)})
	if err != nil {
		return err
	}
	for _, a := range asks {
		if err := tx.tell(ctx, bus.Ask, a.ID.String()); err != nil {
			return err
		}
	}
	return nil
}

// A Usage is what one connection serves: what is told before it is revoked.
type Usage struct {
	Agents []string // live ones that may use it, by name; the first 100
	Tools  int      // standing answers about it
}

// ConnectionUsage says who uses a connection.
func (tx *Tx) ConnectionUsage(ctx context.Context, id ConnectionID) (Usage, error) {
	if _, err := tx.Connection(ctx, id); err != nil {
		return Usage{}, err
	}
	return one[Usage](ctx, tx.tx, `
		SELECT ARRAY(SELECT a.name FROM agent a JOIN connection c ON c.id = @id WHERE `+inScope+` AND a.revoked_at IS NULL ORDER BY a.name LIMIT 100) AS agents,
		       (SELECT count(*)::int FROM approval WHERE connection_id = @id) AS tools`, pgx.StrictNamedArgs{"id": id})
}
