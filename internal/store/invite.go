package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/reason"
)

// An Invite lets whoever owns an address join the organisation, once.
type Invite struct {
	ID        InviteID
	Email     string
	Role      Role
	MadeBy    string // name, or e-mail while they have none
	MadeByID  UserID
	CreatedAt time.Time
	ExpiresAt time.Time
}

const (
	// InviteLife is how long an invite works.
	InviteLife = 7 * 24 * time.Hour
	// MaxInvites is how many open invites an organisation has at most.
	MaxInvites = 200
)

// inviteColumns are of invites that still work.
const inviteColumns = `i.id, i.email, i.role, coalesce(nullif(u.name, ''), u.email) AS made_by, i.made_by AS made_by_id, i.created_at, i.expires_at
	FROM invite i JOIN user_account u ON u.id = i.made_by
	WHERE i.expires_at > @now`

// Invites lists the open invites, newest first. Only those who may read what every member did see any.
func (tx *Tx) Invites(ctx context.Context) ([]Invite, error) {
	return all[Invite](ctx, tx.tx, `SELECT `+inviteColumns+` AND @sees_all ORDER BY i.created_at DESC, i.id DESC`,
		pgx.StrictNamedArgs{"now": tx.now, "sees_all": tx.caller.seesAll()})
}

// CreateInvite invites whoever owns an address, in place of an earlier invite of the same. The token goes into its link
// and is not kept. It looks at the organisation's own members alone: whether the address has an account elsewhere is
// nobody's business here. A member's address is reason.NameTaken.
func (tx *Tx) CreateInvite(ctx context.Context, email string, role Role) (Invite, string, error) {
	email = FoldEmail(email)
	if err := CheckEmail(email); err != nil {
		return Invite{}, "", err
	}
	if _, err := ParseRole(string(role)); err != nil {
		return Invite{}, "", err
	}
	by, err := tx.changeMembers(ctx)
	if err != nil {
		return Invite{}, "", err
	}
	if err := tx.mayInvite(ctx, by, email, role); err != nil {
		return Invite{}, "", err
	}
	if _, err := exec(ctx, tx.tx, `DELETE FROM invite WHERE email = @email`, pgx.StrictNamedArgs{"email": email}); err != nil {
		return Invite{}, "", err
	}
	open, err := value[int](ctx, tx.tx, `SELECT count(*)::int FROM invite WHERE expires_at > @now`, pgx.StrictNamedArgs{"now": tx.now})
	if err != nil {
		return Invite{}, "", err
	}
	if open >= MaxInvites {
		return Invite{}, "", reason.Refuse(reason.InputInvalid, "An organisation has at most %d open invites. Withdraw one that is no longer needed.", MaxInvites).Field("email")
	}
	id := NewID[InviteKind](tx.now)
	token, hash := NewToken(InviteTokenPrefix)
	if _, err := exec(ctx, tx.tx, `
		INSERT INTO invite (id, email, role, hash, made_by, created_at, expires_at)
		VALUES (@id, @email, @role, @hash, @by, @now, @expires)`,
		pgx.StrictNamedArgs{
			"id": id, "email": email, "role": string(role), "hash": hash[:], "by": tx.caller.User, "now": tx.now, "expires": tx.now.Add(InviteLife),
		}); err != nil {
		return Invite{}, "", err
	}
	i, err := tx.invite(ctx, id)
	return i, token, err
}

// mayInvite refuses what somebody of role by may not do, and what there is no need for.
func (tx *Tx) mayInvite(ctx context.Context, by Role, email string, role Role) error {
	switch {
	case tx.caller.Via != ViaSession || !by.MayGive(RoleMember):
		return reason.Refuse(reason.Forbidden, "Your role cannot invite anybody. Ask an admin of the organisation.")
	case !by.MayGive(role):
		return reason.Refuse(reason.Forbidden, "Only an owner invites an owner.").Field("role")
	}
	there, err := one[struct{ Member, Invited Role }](ctx, tx.tx, `
		SELECT coalesce((SELECT m.role FROM member m JOIN user_account u ON u.id = m.user_id WHERE u.email = @email AND m.removed_at IS NULL), '') AS member,
		       coalesce((SELECT role FROM invite WHERE email = @email AND expires_at > @now), '') AS invited`,
		pgx.StrictNamedArgs{"email": email, "now": tx.now})
	switch {
	case err != nil:
		return err
	case there.Member != "":
		return reason.Refuse(reason.NameTaken, "%s is a member already, as %s.", email, there.Member).Field("email")
	case there.Invited != "" && !by.MayGive(there.Invited):
		return reason.Refuse(reason.Forbidden, "This address is invited as %s already. Only an owner changes that.", there.Invited).Field("email")
	}
	return nil
}

func (tx *Tx) invite(ctx context.Context, id InviteID) (Invite, error) {
	return one[Invite](ctx, tx.tx, `SELECT `+inviteColumns+` AND i.id = @id`, pgx.StrictNamedArgs{"id": id, "now": tx.now})
}

// WithdrawInvite ends an open invite and returns it as it was. One that was used, withdrawn or has expired is
// reason.NotFound, as is any to those who see none.
func (tx *Tx) WithdrawInvite(ctx context.Context, id InviteID) (Invite, error) {
	by, err := tx.changeMembers(ctx)
	if err != nil {
		return Invite{}, err
	}
	i, err := tx.invite(ctx, id)
	switch {
	case err != nil:
		return Invite{}, err
	case !tx.caller.seesAll():
		return Invite{}, reason.NotFound
	case !by.MayGive(RoleMember):
		return Invite{}, reason.Refuse(reason.Forbidden, "Your role cannot withdraw invites. Ask an admin of the organisation.")
	case !by.MayGive(i.Role):
		return Invite{}, reason.Refuse(reason.Forbidden, "Only an owner withdraws the invite of an owner.")
	}
	_, err = exec(ctx, tx.tx, `DELETE FROM invite WHERE id = @id`, pgx.StrictNamedArgs{"id": id})
	return i, err
}

// endInvitesOf ends the open invites that user made and that role may not give: their links are in that person's hands.
func (tx *Tx) endInvitesOf(ctx context.Context, user UserID, role Role) error {
	var ends []string
	for _, r := range []Role{RoleOwner, RoleAdmin, RoleMember, RoleAuditor} {
		if !role.MayGive(r) {
			ends = append(ends, string(r))
		}
	}
	_, err := exec(ctx, tx.tx, `DELETE FROM invite WHERE made_by = @user AND role = ANY (@ends::text[])`,
		pgx.StrictNamedArgs{"user": user, "ends": ends})
	return err
}
