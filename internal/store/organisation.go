package store

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/reason"
)

// An Organisation is the tenant.
type Organisation struct {
	ID        OrgID
	Name      string
	CreatedAt time.Time
}

// Organisation is the caller's.
func (tx *Tx) Organisation(ctx context.Context) (Organisation, error) {
	return one[Organisation](ctx, tx.tx, `SELECT id, name, created_at FROM organisation`, nil)
}

// A Member is a user's place in the caller's organisation.
type Member struct {
	UserID    UserID
	Email     string
	Name      string
	Role      Role
	CreatedAt time.Time
}

// Members lists who belongs to the organisation, oldest first.
func (tx *Tx) Members(ctx context.Context) ([]Member, error) {
	return all[Member](ctx, tx.tx, `
		SELECT m.user_id, u.email, u.name, m.role, m.created_at
		FROM member m JOIN user_account u ON u.id = m.user_id
		WHERE m.removed_at IS NULL
		ORDER BY m.created_at, m.user_id`, nil)
}

// RemoveMember ends somebody's membership and revokes the agents they made. Owners remove anybody, admins everybody
// but owners; the last owner stays. Somebody who is not a member is reason.NotFound.
func (tx *Tx) RemoveMember(ctx context.Context, user UserID) error {
	role, err := value[Role](ctx, tx.tx, `SELECT role FROM member WHERE user_id = @user AND removed_at IS NULL FOR UPDATE`,
		pgx.StrictNamedArgs{"user": user})
	if err != nil {
		return err
	}
	if !tx.caller.manages() || role == RoleOwner && tx.caller.Role != RoleOwner {
		return reason.Refuse(reason.Forbidden, "Your role cannot remove this member.")
	}
	// Of two owners who remove one another at once, the second finds itself the last.
	owners, err := all[struct{ UserID UserID }](ctx, tx.tx, `
		SELECT user_id FROM member WHERE role = 'owner' AND removed_at IS NULL ORDER BY user_id FOR UPDATE`, nil)
	if err != nil {
		return err
	}
	if role == RoleOwner && len(owners) == 1 {
		return reason.Refuse(reason.Forbidden, "An organisation keeps its last owner. Make somebody else one first.")
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
		UPDATE oauth_grant SET ended_at = @now, ended_by = @by, cause = 'member'
		WHERE ended_at IS NULL AND (user_id = @user OR agent_id IN (SELECT id FROM agent WHERE user_id = @user))`, args); err != nil {
		return err
	}
	if _, err := exec(ctx, tx.tx, `UPDATE member SET removed_at = @now WHERE user_id = @user`,
		pgx.StrictNamedArgs{"user": user, "now": tx.now}); err != nil {
		return err
	}
	return tx.tell(ctx, bus.Member, tx.caller.Org.String())
}

// FirstOwner is the owner who came first: whom the CLI makes agents for when it is not told.
func (tx *Tx) FirstOwner(ctx context.Context) (UserID, error) {
	return value[UserID](ctx, tx.tx, `
		SELECT user_id FROM member
		WHERE role = 'owner' AND removed_at IS NULL
		ORDER BY created_at, user_id LIMIT 1`, nil)
}

// MemberByEmail is a live member of the organisation.
func (tx *Tx) MemberByEmail(ctx context.Context, email string) (UserID, error) {
	return value[UserID](ctx, tx.tx, `
		SELECT m.user_id
		FROM member m JOIN user_account u ON u.id = m.user_id
		WHERE u.email = @email AND m.removed_at IS NULL`,
		pgx.StrictNamedArgs{"email": FoldEmail(email)})
}

// FoldEmail is the form an e-mail address is stored and compared in.
func FoldEmail(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// CheckEmail refuses what cannot be an address: it wants something on both sides of one @ and nothing that splits
// a header. Whether mail arrives there is nobody's concern here.
func CheckEmail(s string) error {
	local, domain, ok := strings.Cut(s, "@")
	bad := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`,;<>"`, r)
	}
	if !ok || local == "" || domain == "" || strings.Contains(domain, "@") || len(s) > 254 || strings.IndexFunc(s, bad) >= 0 || !utf8.ValidString(s) {
		return reason.Refuse(reason.InputInvalid, "Enter an email address such as ana@example.com.").Field("email")
	}
	return nil
}

// CheckName refuses a name a person could not read back: empty, over max characters, or with control, format or
// line-breaking characters. field names it in the refusal.
func CheckName(field, s string, maxChars int) error {
	switch {
	case strings.TrimSpace(s) == "":
		return reason.Refuse(reason.InputInvalid, "Enter a name.").Field(field)
	case utf8.RuneCountInString(s) > maxChars:
		return reason.Refuse(reason.InputInvalid, "Keep the name to %d characters.", maxChars).Field(field)
	case !utf8.ValidString(s), strings.IndexFunc(s, unprintable) >= 0:
		return reason.Refuse(reason.InputInvalid, "The name has a character that cannot be shown.").Field(field)
	}
	return nil
}

func unprintable(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) || r == utf8.RuneError
}
