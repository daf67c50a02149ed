package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/reason"
)

// An Identity is who a person is at a provider of sign-in (OpenID Connect Core §2): issuer and subject together, and
// nothing else of what the provider says of them.
type Identity struct {
	ID         IdentityID
	UserID     UserID
	Issuer     string
	Subject    string
	Name       string // as the person calls it
	CreatedAt  time.Time
	LastUsedAt *time.Time
}

// identitiesMost is how many identities a person has at most.
const identitiesMost = 20

// AddIdentity binds an identity to i.UserID, and returns it with its id. One that is bound already, to whomever, is
// reason.NameTaken.
func (s *System) AddIdentity(ctx context.Context, i Identity) (Identity, error) {
	err := s.run(ctx, func(tx pgx.Tx) (err error) {
		if _, err := s.ways(ctx, tx, i.UserID, i.Issuer); err != nil {
			return err
		}
		i, err = s.addIdentity(ctx, tx, i)
		return err
	})
	return i, identityTaken(err)
}

func identityTaken(err error) error {
	if code(err) == "23505" { // unique_violation
		return reason.Refuse(reason.NameTaken, "This identity is here already.").Field("identity")
	}
	return err
}

func (s *System) addIdentity(ctx context.Context, tx pgx.Tx, i Identity) (Identity, error) {
	if err := CheckName("name", i.Name, 80); err != nil {
		return Identity{}, err
	}
	i.CreatedAt = s.db.Now()
	i.ID = NewID[IdentityKind](i.CreatedAt)
	n, err := exec(ctx, tx, `
		INSERT INTO user_identity (id, user_id, issuer, subject, name, created_at)
		SELECT @id, @user, @issuer, @subject, @name, @now
		WHERE (SELECT count(*) FROM user_identity WHERE user_id = @user) < @most`,
		pgx.StrictNamedArgs{"id": i.ID, "user": i.UserID, "issuer": i.Issuer, "subject": i.Subject, "name": i.Name, "now": i.CreatedAt, "most": identitiesMost})
	if err == nil && n == 0 {
		return Identity{}, reason.Refuse(reason.InputInvalid, "You have %d of them, which is the most. Remove one that you no longer use.", identitiesMost).Field("identity")
	}
	return i, err
}

// Identities lists a user's identities, the oldest first.
func (s *System) Identities(ctx context.Context, user UserID) (list []Identity, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		list, err = all[Identity](ctx, tx, `
			SELECT id, user_id, issuer, subject, name, created_at, last_used_at
			FROM user_identity WHERE user_id = @user ORDER BY created_at, id`, pgx.StrictNamedArgs{"user": user})
		return err
	})
	return list, err
}

// Identity finds an identity by what its provider calls it.
func (s *System) Identity(ctx context.Context, issuer, subject string) (i Identity, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		i, err = one[Identity](ctx, tx, `
			SELECT id, user_id, issuer, subject, name, created_at, last_used_at
			FROM user_identity WHERE issuer = @issuer AND subject = @subject`, pgx.StrictNamedArgs{"issuer": issuer, "subject": subject})
		return err
	})
	return i, err
}

// RenameIdentity gives a user's identity another name.
func (s *System) RenameIdentity(ctx context.Context, user UserID, id IdentityID, name string) error {
	if err := CheckName("name", name, 80); err != nil {
		return err
	}
	return s.run(ctx, func(tx pgx.Tx) error {
		n, err := exec(ctx, tx, `UPDATE user_identity SET name = @name WHERE id = @id AND user_id = @user`,
			pgx.StrictNamedArgs{"id": id, "user": user, "name": name})
		if err == nil && n == 0 {
			return reason.NotFound
		}
		return err
	})
}

// RemoveIdentity unbinds a user's identity. Only those of issuer are ways to sign in; the last way of all stays, which is
// reason.InputInvalid.
func (s *System) RemoveIdentity(ctx context.Context, user UserID, id IdentityID, issuer string) error {
	return s.run(ctx, func(tx pgx.Tx) error {
		w, err := s.ways(ctx, tx, user, issuer)
		if err != nil {
			return err
		}
		of, err := value[string](ctx, tx, `DELETE FROM user_identity WHERE id = @id AND user_id = @user RETURNING issuer`,
			pgx.StrictNamedArgs{"id": id, "user": user})
		switch {
		case err != nil:
			return err
		case of == issuer && w.one():
			return reason.Refuse(reason.InputInvalid, "This is your only way to sign in. Set a password or add a passkey first.")
		}
		return nil
	})
}

// BeginIdentitySession writes the browser session of a user whose identity was proved, and notes that it was. Where it
// was removed meanwhile the session does not begin, and that is reason.NotFound.
func (s *System) BeginIdentitySession(ctx context.Context, hash TokenHash, user UserID, id IdentityID, data []byte, expires time.Time) error {
	return s.run(ctx, func(tx pgx.Tx) error {
		n, err := exec(ctx, tx, `UPDATE user_identity SET last_used_at = @now WHERE id = @id AND user_id = @user`,
			pgx.StrictNamedArgs{"id": id, "user": user, "now": s.db.Now()})
		if err != nil {
			return err
		}
		if n == 0 {
			return reason.NotFound
		}
		_, err = exec(ctx, tx, `INSERT INTO web_session (hash, user_id, data, expires_at) VALUES (@hash, @user, @data, @expires)`,
			pgx.StrictNamedArgs{"hash": hash[:], "user": user, "data": data, "expires": expires})
		return err
	})
}
