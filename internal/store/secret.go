package store

import (
	"context"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/reason"
)

// A Secret is what ${NAME} in an upstream's header stands for, as people see it: everything but its value.
type Secret struct {
	ID     SecretID
	Name   string
	SetAt  time.Time
	SetBy  string   // name or e-mail; "" when the CLI did
	UsedBy []string // live upstreams with a header that names it
}

// Secrets lists the organisation's secrets by name.
func (tx *Tx) Secrets(ctx context.Context) ([]Secret, error) {
	return all[Secret](ctx, tx.tx, `
		SELECT s.id, s.name, s.set_at, coalesce(nullif(u.name, ''), u.email, '') AS set_by,
		       ARRAY(SELECT DISTINCT p.name FROM upstream_header h JOIN upstream p ON p.id = h.upstream_id
		             WHERE s.name = ANY (h.secrets) ORDER BY p.name) AS used_by
		FROM secret s LEFT JOIN user_account u ON u.id = s.set_by
		ORDER BY s.name`, nil)
}

var secretName = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

// CheckSecretName refuses what cannot be the name of a secret.
func CheckSecretName(name string) error {
	if secretName.MatchString(name) {
		return nil
	}
	return reason.Refuse(reason.InputInvalid, "Name a secret with capital letters, digits and underscores, a letter first, such as GITHUB_TOKEN.").Field("name")
}

// SetSecret keeps what seal returns as the secret's value; seal is told the row that it is sealed for. It reports
// whether the secret is new. Every connection that was made with an older value is made anew.
func (tx *Tx) SetSecret(ctx context.Context, name string, seal func(SecretID) ([]byte, error)) (made bool, err error) {
	if err := tx.mayManage(); err != nil {
		return false, err
	}
	if err := CheckSecretName(name); err != nil {
		return false, err
	}
	id, err := value[SecretID](ctx, tx.tx, `SELECT id FROM secret WHERE name = @name FOR UPDATE`, pgx.StrictNamedArgs{"name": name})
	if made = IsAbsent(err); made {
		id, err = NewID[SecretKind](tx.now), nil
	}
	if err != nil {
		return false, err
	}
	sealed, err := seal(id)
	if err != nil {
		return false, err
	}
	n, err := exec(ctx, tx.tx, `
		INSERT INTO secret (id, name, value, set_at, set_by) VALUES (@id, @name, @value, @now, @by)
		ON CONFLICT (org_id, name) DO UPDATE SET value = excluded.value, set_at = excluded.set_at, set_by = excluded.set_by
		WHERE secret.id = excluded.id`,
		pgx.StrictNamedArgs{"id": id, "name": name, "value": sealed, "now": tx.now, "by": tx.caller.User})
	if err == nil && n == 0 { // somebody else made it meanwhile, under an id that this was not sealed for
		err = reason.Refuse(reason.NameTaken, "Somebody else set %s at the same time. Set it again.", name).Field("name")
	}
	if err != nil {
		return false, err
	}
	return made, tx.toolsMoved(ctx)
}

// RemoveSecret destroys a secret. Upstreams that name it refuse to connect until it is set again.
func (tx *Tx) RemoveSecret(ctx context.Context, name string) error {
	if err := tx.mayManage(); err != nil {
		return err
	}
	n, err := exec(ctx, tx.tx, `DELETE FROM secret WHERE name = @name`, pgx.StrictNamedArgs{"name": name})
	if err == nil && n == 0 {
		return reason.NotFound
	}
	if err != nil {
		return err
	}
	return tx.toolsMoved(ctx)
}

// mayManage refuses whoever may not change what belongs to the whole organisation.
func (tx *Tx) mayManage() error {
	if tx.caller.MayManage() {
		return nil
	}
	return reason.Refuse(reason.Forbidden, "Your role does not allow it. Ask an admin of the organisation.")
}

// toolsMoved tells every replica to read anew what the organisation's tools are and how they are reached.
func (tx *Tx) toolsMoved(ctx context.Context) error {
	return tx.tell(ctx, bus.Tools, tx.caller.Org.String())
}
