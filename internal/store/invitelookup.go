package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/reason"
)

// An Invitation is an open invite as whoever holds its link reads it.
type Invitation struct {
	Org     OrgID
	OrgName string
	Email   string
	Role    Role
	MadeBy  string
}

// Invitation looks at an invite by its link's token and uses nothing up. One that was used or withdrawn, has expired or
// never existed is reason.LinkNotValid.
func (s *System) Invitation(ctx context.Context, token string) (i Invitation, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		i, err = s.invitation(ctx, tx, token)
		return err
	})
	return i, err
}

func (s *System) invitation(ctx context.Context, tx pgx.Tx, token string) (Invitation, error) {
	hash := HashToken(token)
	i, err := one[Invitation](ctx, tx, `
		SELECT i.org_id AS org, o.name AS org_name, i.email, i.role, coalesce(nullif(u.name, ''), u.email) AS made_by
		FROM invite i
		JOIN organisation o ON o.id = i.org_id
		JOIN user_account u ON u.id = i.made_by
		WHERE i.hash = @hash AND i.expires_at > @now`, pgx.StrictNamedArgs{"hash": hash[:], "now": s.db.Now()})
	if IsAbsent(err) {
		return Invitation{}, inviteOver()
	}
	return i, err
}

func inviteOver() error {
	return reason.Refuse(reason.LinkNotValid, "This invite was used or withdrawn, or has expired.")
}

// A Joining is who uses an invite: an account that was proved, or a new one.
type Joining struct {
	User     UserID // zero makes an account of the invited address
	Name     string // of a new account
	Password string // of a new account: argon2id, PHC string form; "" with an identity
	// Identity is bound to the new account, in place of a password. It has its id then.
	Identity *Identity
}

// Join uses an invite up and makes the membership, or brings a removed one back; one that goes on keeps its role. Of two
// that use one invite at once the second gets reason.LinkNotValid, and so does one after it was withdrawn. The invite is
// for its address alone: an account of another is reason.Forbidden, and a new one where the address has one is
// reason.NameTaken. An invite never sets the password of an account that somebody can use: whoever made it would have
// the account. What is refused uses nothing up.
func (s *System) Join(ctx context.Context, token string, in Joining) (user UserID, i Invitation, err error) {
	err = s.run(ctx, func(tx pgx.Tx) error {
		i, err = s.invitation(ctx, tx, token)
		if err != nil {
			return err
		}
		// Changes of who belongs to an organisation are made one after the other; see changeMembers.
		if _, err := value[OrgID](ctx, tx, `SELECT id FROM organisation WHERE id = @org FOR NO KEY UPDATE`, pgx.StrictNamedArgs{"org": i.Org}); err != nil {
			return err
		}
		hash, now := HashToken(token), s.db.Now()
		n, err := exec(ctx, tx, `DELETE FROM invite WHERE hash = @hash AND expires_at > @now`, pgx.StrictNamedArgs{"hash": hash[:], "now": now})
		if err != nil {
			return err
		}
		if n == 0 {
			return inviteOver()
		}
		if user, err = s.joiner(ctx, tx, i.Email, in); err != nil {
			return err
		}
		// Nothing that began before they were out of everything goes on now that they are in again.
		if err := endStranger(ctx, tx, user); err != nil {
			return err
		}
		_, err = exec(ctx, tx, `
			INSERT INTO member (org_id, user_id, role, created_at) VALUES (@org, @user, @role, @now)
			ON CONFLICT (org_id, user_id) DO UPDATE SET role = excluded.role, created_at = excluded.created_at, removed_at = NULL
			WHERE member.removed_at IS NOT NULL`,
			pgx.StrictNamedArgs{"org": i.Org, "user": user, "role": string(i.Role), "now": now})
		return err
	})
	return user, i, identityTaken(err)
}

// joiner is the account that joins.
func (s *System) joiner(ctx context.Context, tx pgx.Tx, email string, in Joining) (UserID, error) {
	if !in.User.IsZero() {
		own, err := value[string](ctx, tx, `SELECT email FROM user_account WHERE id = @user`, pgx.StrictNamedArgs{"user": in.User})
		if err == nil && own != email {
			err = reason.Refuse(reason.Forbidden, "This invite is for %s.", email)
		}
		return in.User, err
	}
	if in.Password == "" && in.Identity == nil {
		return UserID{}, errors.New("an account is made without a way to sign in")
	}
	if err := CheckName("name", in.Name, 80); err != nil {
		return UserID{}, err
	}
	now := s.db.Now()
	// An account that nobody can sign in to, of nobody's organisation, is as good as none.
	user, err := value[UserID](ctx, tx, `
		INSERT INTO user_account (id, email, name, password, created_at) VALUES (@id, @email, @name, @password, @now)
		ON CONFLICT (email) DO UPDATE SET name = excluded.name, password = excluded.password
		WHERE user_account.password = '' AND NOT EXISTS (SELECT FROM user_passkey p WHERE p.user_id = user_account.id)
		  AND NOT EXISTS (SELECT FROM user_identity i WHERE i.user_id = user_account.id)
		  AND NOT EXISTS (SELECT FROM member m WHERE m.user_id = user_account.id AND m.removed_at IS NULL)
		RETURNING id`,
		pgx.StrictNamedArgs{"id": NewID[UserKind](now), "email": email, "name": in.Name, "password": in.Password, "now": now})
	if IsAbsent(err) {
		return UserID{}, reason.Refuse(reason.NameTaken, "%s has an account already.", email).Field("email")
	}
	if err != nil || in.Identity == nil {
		return user, err
	}
	in.Identity.UserID = user
	*in.Identity, err = s.addIdentity(ctx, tx, *in.Identity)
	return user, err
}

// endStranger ends the browser sessions and one-time links of an account that belongs to no organisation. It holds the
// account's row, as whoever begins a session does.
func endStranger(ctx context.Context, tx pgx.Tx, user UserID) error {
	if _, err := value[UserID](ctx, tx, `SELECT id FROM user_account WHERE id = @user FOR NO KEY UPDATE`, pgx.StrictNamedArgs{"user": user}); err != nil {
		return err
	}
	if _, err := exec(ctx, tx, `
		DELETE FROM web_session w
		WHERE w.user_id = @user AND NOT EXISTS (SELECT FROM member m WHERE m.user_id = w.user_id AND m.removed_at IS NULL)`,
		pgx.StrictNamedArgs{"user": user}); err != nil {
		return err
	}
	_, err := exec(ctx, tx, `
		DELETE FROM signin_link l
		WHERE l.user_id = @user AND NOT EXISTS (SELECT FROM member m WHERE m.user_id = l.user_id AND m.removed_at IS NULL)`,
		pgx.StrictNamedArgs{"user": user})
	return err
}
