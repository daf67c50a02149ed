package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/reason"
)

// A Credential is what a request through a connection is made with. It is sealed: egress alone opens it.
type Credential struct {
	ConnectionID   ConnectionID
	Vendor         string
	Scheme         string
	Config         map[string]string
	Hosts          []string
	Sealed         []byte // nil where the scheme needs none
	Version        int
	TokenExpiresAt *time.Time
	Health         string // what the vendor last said of it
	HealthWord     string
}

// AgentCredential is the credential of a connection that an agent may use. One that is not in its scope is connection_not_in_scope, a
// revoked one connection_revoked, one whose credential nobody has entered credential_incomplete, and one that it could not read
// connection_not_found.
func (tx *Tx) AgentCredential(ctx context.Context, agent AgentID, id ConnectionID) (Credential, error) {
	if err := tx.use(ctx, agent); err != nil {
		return Credential{}, err
	}
	row, err := one[struct {
		Credential
		Readable, InScope, Revoked bool
	}](ctx, tx.tx, `
		SELECT c.id AS connection_id, c.vendor, c.scheme, c.config, c.hosts, c.credential AS sealed, c.version, c.token_expires_at, c.health, c.health_word,
		       c.user_id IS NULL OR c.user_id = a.user_id AS readable, `+inScope+` AS in_scope, c.revoked_at IS NOT NULL AS revoked
		FROM connection c JOIN agent a ON a.id = @agent WHERE c.id = @id AND c.upstream_id IS NULL`,
		pgx.StrictNamedArgs{"agent": agent, "id": id})
	switch {
	case IsAbsent(err), err == nil && !row.Readable:
		return Credential{}, reason.Refuse(reason.ConnectionAbsent, "There is no connection %s.", id)
	case err != nil:
		return Credential{}, err
	case !row.InScope:
		return Credential{}, reason.Refuse(reason.ConnectionNotInScope, "The connection %s to %s is not among those that this agent may use.", id, row.Vendor)
	case row.Revoked:
		return Credential{}, reason.Refuse(reason.ConnectionRevoked, "The connection %s to %s was revoked. A person brings it back by entering its credential again.", id, row.Vendor)
	case row.Sealed == nil && row.Scheme != NoScheme:
		return Credential{}, reason.Refuse(reason.CredentialIncomplete, "Nobody has entered the credential of the connection %s to %s yet.", id, row.Vendor)
	}
	return row.Credential, nil
}

// OwnCredential is the credential of a shared connection or of the caller's own, for its test and for its refresh; a job has any.
func (tx *Tx) OwnCredential(ctx context.Context, id ConnectionID) (Credential, error) {
	return one[Credential](ctx, tx.tx, `
		SELECT c.id AS connection_id, c.vendor, c.scheme, c.config, c.hosts, c.credential AS sealed, c.version, c.token_expires_at, c.health, c.health_word
		FROM connection c WHERE c.id = @id AND c.upstream_id IS NULL AND c.revoked_at IS NULL
		  AND (c.user_id IS NULL OR c.user_id = @user OR @job)`, pgx.StrictNamedArgs{"id": id, "user": tx.caller.User, "job": tx.caller.Via == ViaJob})
}

// LeaseRefresh reports whether the caller is the one who refreshes the token of that version of a connection's credential, until at most
// the given time: of many, on whatever replica, one. The others look again soon.
func (tx *Tx) LeaseRefresh(ctx context.Context, id ConnectionID, version int, until time.Time) (bool, error) {
	n, err := exec(ctx, tx.tx, `
		UPDATE connection SET refresh_until = @until
		WHERE id = @id AND version = @version AND revoked_at IS NULL AND (refresh_until IS NULL OR refresh_until <= @now)`,
		pgx.StrictNamedArgs{"id": id, "version": version, "until": until, "now": tx.now})
	return n == 1, err
}

// RotateCredential keeps what a refresh gave, where the credential is still of that version: one that a person entered meanwhile stays.
// It reports whether it was kept.
func (tx *Tx) RotateCredential(ctx context.Context, id ConnectionID, version int, sealed []byte, expires *time.Time) (bool, error) {
	n, err := exec(ctx, tx.tx, `
		UPDATE connection SET credential = @credential, version = version + 1, token_expires_at = @expires, refresh_until = NULL,
		       health = 'ok', health_word = '', health_at = @now
		WHERE id = @id AND version = @version AND revoked_at IS NULL`,
		pgx.StrictNamedArgs{"id": id, "version": version, "credential": sealed, "expires": expires, "now": tx.now})
	return n == 1, err
}

// NoteHealth notes what a vendor's answer said of that version of a credential: word is "" where it was taken. It reports whether the
// health changed.
func (tx *Tx) NoteHealth(ctx context.Context, id ConnectionID, version int, word string) (changed bool, err error) {
	health := HealthOK
	if word != "" {
		health = HealthFailing
	}
	n, err := exec(ctx, tx.tx, `
		UPDATE connection SET health = @health, health_word = @word, health_at = @now, refresh_until = NULL
		WHERE id = @id AND version = @version AND revoked_at IS NULL AND (health, health_word) IS DISTINCT FROM (@health, @word)`,
		pgx.StrictNamedArgs{"id": id, "version": version, "health": health, "word": word, "now": tx.now})
	if err != nil || n == 0 {
		return false, err
	}
	return true, tx.tell(ctx, bus.Tools, tx.caller.Org.String())
}
