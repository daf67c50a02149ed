package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/reason"
)

// A Member is a user's place in the caller's organisation.
type Member struct {
	UserID     UserID
	Email      string
	Name       string
	Role       Role
	CreatedAt  time.Time
	SignedInAt *time.Time // the last sign-in that began in this organisation; nil where none is known
	Agents     int        // live ones that they made
}

const memberColumns = `m.user_id, u.email, u.name, m.role, m.created_at, m.signed_in_at, coalesce(a.live, 0) AS agents
	FROM member m
	JOIN user_account u ON u.id = m.user_id
	LEFT JOIN (SELECT user_id, count(*)::int AS live FROM agent WHERE revoked_at IS NULL GROUP BY user_id) a ON a.user_id = m.user_id
	WHERE m.removed_at IS NULL`

// Members lists who belongs to the organisation, oldest first.
func (tx *Tx) Members(ctx context.Context) ([]Member, error) {
	return all[Member](ctx, tx.tx, `SELECT `+memberColumns+` ORDER BY m.created_at, m.user_id`, nil)
}

// Member is one of them.
func (tx *Tx) Member(ctx context.Context, user UserID) (Member, error) {
	return one[Member](ctx, tx.tx, `SELECT `+memberColumns+` AND m.user_id = @user`, pgx.StrictNamedArgs{"user": user})
}

// MemberByEmail is a live member of the organisation.
func (tx *Tx) MemberByEmail(ctx context.Context, email string) (UserID, error) {
	return value[UserID](ctx, tx.tx, `
		SELECT m.user_id
		FROM member m JOIN user_account u ON u.id = m.user_id
		WHERE u.email = @email AND m.removed_at IS NULL`,
		pgx.StrictNamedArgs{"email": FoldEmail(email)})
}

// FirstOwner is the owner who came first: whom the CLI makes agents for when it is not told.
func (tx *Tx) FirstOwner(ctx context.Context) (UserID, error) {
	return value[UserID](ctx, tx.tx, `
		SELECT user_id FROM member
		WHERE role = 'owner' AND removed_at IS NULL
		ORDER BY created_at, user_id LIMIT 1`, nil)
}

// NoteSignIn keeps when the caller signed in.
func (tx *Tx) NoteSignIn(ctx context.Context) error {
	_, err := exec(ctx, tx.tx, `UPDATE member SET signed_in_at = @now WHERE user_id = @user AND removed_at IS NULL`,
		pgx.StrictNamedArgs{"user": tx.caller.User, "now": tx.now})
	return err
}

// Holdings are what ends with a membership.
type Holdings struct {
	Agents  int // live ones
	Grants  int // live ones that they made, or that are of their agents
	Invites int // open ones that they made
}

// Holdings counts what would end if user were removed.
func (tx *Tx) Holdings(ctx context.Context, user UserID) (Holdings, error) {
	return one[Holdings](ctx, tx.tx, `
		SELECT (SELECT count(*)::int FROM agent WHERE user_id = @user AND revoked_at IS NULL) AS agents,
		       (SELECT count(*)::int FROM oauth_grant
		        WHERE ended_at IS NULL AND (user_id = @user OR agent_id IN (SELECT id FROM agent WHERE user_id = @user))) AS grants,
		       (SELECT count(*)::int FROM invite WHERE made_by = @user AND expires_at > @now) AS invites`,
		pgx.StrictNamedArgs{"user": user, "now": tx.now})
}

// MayGive reports whether somebody of role r may give another role, take it away and remove whoever has it: owners any,
// admins all but owner.
func (r Role) MayGive(other Role) bool {
	return r == RoleOwner || r == RoleAdmin && other != RoleOwner
}

// changeMembers makes changes of who belongs to the organisation one after the other, and returns what the caller's role
// is by then: it may have been taken away since the request began. Those who change nothing have RoleAuditor.
func (tx *Tx) changeMembers(ctx context.Context) (Role, error) {
	if _, err := value[OrgID](ctx, tx.tx, `SELECT id FROM organisation FOR NO KEY UPDATE`, nil); err != nil {
		return "", err
	}
	switch tx.caller.Via {
	case ViaCLI, ViaJob:
		return RoleOwner, nil
	case ViaSession:
		role, err := value[Role](ctx, tx.tx, `SELECT role FROM member WHERE user_id = @user AND removed_at IS NULL`,
			pgx.StrictNamedArgs{"user": tx.caller.User})
		if !IsAbsent(err) {
			return role, err
		}
	}
	return RoleAuditor, nil
}

// roleOf is the role of a live member, whose row it holds.
func (tx *Tx) roleOf(ctx context.Context, user UserID) (Role, error) {
	return value[Role](ctx, tx.tx, `SELECT role FROM member WHERE user_id = @user AND removed_at IS NULL FOR UPDATE`,
		pgx.StrictNamedArgs{"user": user})
}

// keepAnOwner refuses to go on without user where that is the only owner.
func (tx *Tx) keepAnOwner(ctx context.Context, user UserID) error {
	others, err := value[bool](ctx, tx.tx, `
		SELECT EXISTS (SELECT FROM member WHERE role = 'owner' AND removed_at IS NULL AND user_id <> @user)`, pgx.StrictNamedArgs{"user": user})
	if err == nil && !others {
		err = reason.Refuse(reason.Forbidden, "An organisation keeps its last owner. Make somebody else one first.").Field("role")
	}
	return err
}

// SetRole gives a member another role and returns the one they had. Owners give any, admins all but owner; the last owner
// stays one, and somebody with live agents becomes no auditor. What the member may no longer give, the open invites that
// they made no longer do.
func (tx *Tx) SetRole(ctx context.Context, user UserID, role Role) (was Role, err error) {
	if _, err := ParseRole(string(role)); err != nil {
		return "", err
	}
	by, err := tx.changeMembers(ctx)
	if err != nil {
		return "", err
	}
	if was, err = tx.roleOf(ctx, user); err != nil {
		return "", err
	}
	switch {
	case !by.MayGive(was) || !by.MayGive(role):
		return was, reason.Refuse(reason.Forbidden, "Your role cannot make this change. Ask an owner of the organisation.").Field("role")
	case was == role:
		return was, nil
	case was == RoleOwner:
		if err := tx.keepAnOwner(ctx, user); err != nil {
			return was, err
		}
	}
	if role == RoleAuditor {
		held, err := tx.Holdings(ctx, user)
		if err != nil {
			return was, err
		}
		if held.Agents > 0 {
			return was, reason.Refuse(reason.InputInvalid, "An auditor reads only and has no agents. Revoke theirs first: %d live.", held.Agents).Field("role")
		}
	}
	if _, err := exec(ctx, tx.tx, `UPDATE member SET role = @role WHERE user_id = @user`,
		pgx.StrictNamedArgs{"user": user, "role": string(role)}); err != nil {
		return was, err
	}
	if err := tx.endInvitesOf(ctx, user, role); err != nil {
		return was, err
	}
	return was, tx.tell(ctx, bus.Member, tx.caller.Org.String())
}

// RemoveMember ends somebody's membership, the invites and grants they made, and their agents; where they belong to no
// other organisation, their browser sessions and one-time links too. Owners remove anybody, admins everybody but owners;
// the last owner stays. Somebody who is not a member is reason.NotFound.
func (tx *Tx) RemoveMember(ctx context.Context, user UserID) error {
	by, err := tx.changeMembers(ctx)
	if err != nil {
		return err
	}
	role, err := tx.roleOf(ctx, user)
	if err != nil {
		return err
	}
	if !by.MayGive(role) {
		return reason.Refuse(reason.Forbidden, "Your role cannot remove this member.")
	}
	if role == RoleOwner {
		if err := tx.keepAnOwner(ctx, user); err != nil {
			return err
		}
	}
	args := pgx.StrictNamedArgs{"user": user, "by": tx.caller.User, "now": tx.now}
	if _, err := exec(ctx, tx.tx, `
		UPDATE agent_token SET ended_at = @now
		WHERE ended_at IS NULL AND agent_id IN (SELECT id FROM agent WHERE user_id = @user)`,
		pgx.StrictNamedArgs{"user": user, "now": tx.now}); err != nil {
		return err
	}
	if _, err := exec(ctx, tx.tx, `UPDATE agent SET revoked_at = @now, revoked_by = @by WHERE user_id = @user AND revoked_at IS NULL`, args); err != nil {
		return err
	}
	// What they consented to ends as well, for whose agent it was: the app is theirs.
	if _, err := exec(ctx, tx.tx, `
		WITH ended AS (
			UPDATE oauth_grant g SET ended_at = @now, ended_by = @by, cause = 'member', last_refreshed_at = `+lastRefreshed+`
			WHERE g.ended_at IS NULL AND (g.user_id = @user OR g.agent_id IN (SELECT id FROM agent WHERE user_id = @user)) RETURNING g.id)`+wipeEnded, args); err != nil {
		return err
	}
	if err := tx.revokeConnectionsOf(ctx, user); err != nil {
		return err
	}
	if _, err := exec(ctx, tx.tx, `UPDATE member SET removed_at = @now WHERE user_id = @user`,
		pgx.StrictNamedArgs{"user": user, "now": tx.now}); err != nil {
		return err
	}
	if err := tx.endInvitesOf(ctx, user, RoleAuditor); err != nil {
		return err
	}
	if err := tx.endBrowser(ctx, user); err != nil {
		return err
	}
	return tx.tell(ctx, bus.Member, tx.caller.Org.String())
}

// endBrowser ends the browser sessions and one-time links of user, if that is a member nowhere by now. Neither belongs to
// an organisation, so it is done in System's role, within this transaction. The account's row is held, so that of two
// organisations that remove somebody at once the second finds them a stranger.
func (tx *Tx) endBrowser(ctx context.Context, user UserID) error {
	if _, err := tx.tx.Exec(ctx, `SET LOCAL ROLE graft_system`); err != nil {
		return err
	}
	if err := endStranger(ctx, tx.tx, user); err != nil {
		return err
	}
	_, err := tx.tx.Exec(ctx, `SET LOCAL ROLE graft_app`)
	return err
}
