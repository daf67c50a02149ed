package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/reason"
)

// System answers the few questions that come before a tenant is known: whose token, whose session, whose address.
// Its role reads only what these methods need, and this file is all of them.
type System struct{ db *DB }

// System is the way to those questions.
func (db *DB) System() *System { return &System{db} }

func (s *System) run(ctx context.Context, fn func(pgx.Tx) error) error {
	return s.db.run(ctx, "BEGIN; SET LOCAL ROLE graft_system", fn)
}

// A Bearer is what a live static token resolves to.
type Bearer struct {
	Org   OrgID
	User  UserID
	Agent AgentID
	Role  Role
}

// Bearer resolves a token's hash. Unknown, renewed, of a revoked agent and of a removed member are one answer,
// reason.NotFound.
func (s *System) Bearer(ctx context.Context, hash TokenHash) (b Bearer, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		b, err = one[Bearer](ctx, tx, `
			SELECT t.org_id AS org, a.user_id AS user, a.id AS agent, m.role
			FROM agent_token t
			JOIN agent a ON a.org_id = t.org_id AND a.id = t.agent_id
			JOIN member m ON m.org_id = a.org_id AND m.user_id = a.user_id
			WHERE t.hash = @hash AND t.ended_at IS NULL AND a.revoked_at IS NULL AND m.removed_at IS NULL`,
			pgx.StrictNamedArgs{"hash": hash[:]})
		return err
	})
	return b, err
}

// A User is an account as sign-in sees it.
type User struct {
	ID       UserID
	Email    string
	Name     string
	Password string // argon2id, PHC string form; "" while none is set
}

// UserByEmail finds an account by its folded address.
func (s *System) UserByEmail(ctx context.Context, email string) (u User, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		u, err = one[User](ctx, tx, `SELECT id, email, name, password FROM user_account WHERE email = @email`,
			pgx.StrictNamedArgs{"email": FoldEmail(email)})
		return err
	})
	return u, err
}

// A Membership is one organisation a user belongs to.
type Membership struct {
	Org     OrgID
	OrgName string
	Role    Role
	Email   string
	Name    string
}

// Memberships lists a user's live memberships by the name of the organisation.
func (s *System) Memberships(ctx context.Context, user UserID) (list []Membership, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		list, err = all[Membership](ctx, tx, `
			SELECT m.org_id AS org, o.name AS org_name, m.role, u.email, u.name
			FROM member m
			JOIN organisation o ON o.id = m.org_id
			JOIN user_account u ON u.id = m.user_id
			WHERE m.user_id = @user AND m.removed_at IS NULL
			ORDER BY lower(o.name)`, pgx.StrictNamedArgs{"user": user})
		return err
	})
	return list, err
}

// AnyUser reports whether an account exists. While none does, welcome links work.
func (s *System) AnyUser(ctx context.Context) (found bool, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		found, err = value[bool](ctx, tx, `SELECT EXISTS (SELECT FROM user_account)`, nil)
		return err
	})
	return found, err
}

// OrganisationByName finds an organisation whatever the case of its name; "" finds the only one there is.
func (s *System) OrganisationByName(ctx context.Context, name string) (o Organisation, err error) {
	err = s.run(ctx, func(tx pgx.Tx) error {
		list, err := all[Organisation](ctx, tx, `
			SELECT id, name, created_at FROM organisation
			WHERE @name = '' OR lower(name) = lower(@name)
			ORDER BY lower(name) LIMIT @some`, pgx.StrictNamedArgs{"name": name, "some": namedAtMost + 1})
		if err != nil {
			return err
		}
		switch {
		case len(list) == 1:
			o = list[0]
			return nil
		case len(list) > 1:
			return several(list)
		case name == "":
			return reason.Refuse(reason.NotFoundWord, "There is no organisation yet.").Field("org")
		}
		return reason.Refuse(reason.NotFoundWord, "There is no organisation called %q.", name).Field("org")
	})
	return o, err
}

// namedAtMost is how many organisations a refusal names.
const namedAtMost = 10

func several(list []Organisation) error {
	names := make([]string, 0, namedAtMost)
	for _, o := range list[:min(len(list), namedAtMost)] {
		names = append(names, o.Name)
	}
	more := ""
	if len(list) > namedAtMost {
		more = " and more"
	}
	return reason.Refuse(reason.InputInvalid, "There are several organisations: %s%s. Say which with --org.", strings.Join(names, ", "), more).Field("org")
}

// An Enrolment is a membership, and the organisation it is in.
type Enrolment struct {
	Organisation
	Founded bool // whether the organisation was made for it
	Role    Role
}

// Enrol makes what is missing of an organisation called org, an account for email and its membership. Role "" is
// whatever the membership has, and member for a new one. The first member of an organisation is its owner whatever
// role says. Another role than an existing membership has is reason.NameTaken: roles are not changed here. Somebody
// who was removed is reason.Forbidden.
func (s *System) Enrol(ctx context.Context, org, email string, role Role) (e Enrolment, user UserID, err error) {
	if err := CheckName("org", org, 80); err != nil {
		return Enrolment{}, UserID{}, err
	}
	if err := CheckEmail(FoldEmail(email)); err != nil {
		return Enrolment{}, UserID{}, err
	}
	if role != "" {
		if _, err := ParseRole(string(role)); err != nil {
			return Enrolment{}, UserID{}, err
		}
	}
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		if e.Organisation, e.Founded, err = s.organisation(ctx, tx, org); err != nil {
			return err
		}
		if user, err = s.account(ctx, tx, NewID[UserKind](s.db.Now()), email, ""); err != nil {
			return err
		}
		made, m, err := s.join(ctx, tx, e.ID, user, role)
		e.Role = m.Role
		switch {
		case err != nil:
			return err
		case m.Removed:
			return reason.Refuse(reason.Forbidden, "%s was removed from %s. An invite of the Members page brings them back.", FoldEmail(email), e.Name).Field("email")
		case !made && role != "" && role != m.Role:
			return reason.Refuse(reason.NameTaken, "%s is a member already, as %s. To change that, run graft user role.", FoldEmail(email), m.Role).Field("role")
		}
		return nil
	})
	return e, user, err
}

// DeleteOrganisation deletes an organisation with everything that is its own, its key among it: what was sealed under
// that is shredded. People's accounts stay.
func (s *System) DeleteOrganisation(ctx context.Context, id OrgID) error {
	return s.run(ctx, func(tx pgx.Tx) error {
		n, err := exec(ctx, tx, `DELETE FROM organisation WHERE id = @id`, pgx.StrictNamedArgs{"id": id})
		if err == nil && n == 0 {
			return reason.NotFound
		}
		if err != nil {
			return err
		}
		return tell(ctx, tx, bus.Member, id.String())
	})
}

// organisation finds or makes one by name, and holds its row so that two first members do not both become owner.
func (s *System) organisation(ctx context.Context, tx pgx.Tx, name string) (o Organisation, made bool, err error) {
	now := s.db.Now()
	n, err := exec(ctx, tx, `
		INSERT INTO organisation (id, name, created_at) VALUES (@id, @name, @now)
		ON CONFLICT (lower(name)) DO NOTHING`,
		pgx.StrictNamedArgs{"id": NewID[OrgKind](now), "name": name, "now": now})
	if err != nil {
		return Organisation{}, false, err
	}
	o, err = one[Organisation](ctx, tx, `SELECT id, name, created_at FROM organisation WHERE lower(name) = lower(@name) FOR UPDATE`,
		pgx.StrictNamedArgs{"name": name})
	return o, n > 0, err
}

// account finds the account of an address, or makes it as id.
func (s *System) account(ctx context.Context, tx pgx.Tx, id UserID, email, name string) (UserID, error) {
	now, email := s.db.Now(), FoldEmail(email)
	_, err := exec(ctx, tx, `
		INSERT INTO user_account (id, email, name, created_at) VALUES (@id, @email, @name, @now)
		ON CONFLICT (email) DO NOTHING`,
		pgx.StrictNamedArgs{"id": id, "email": email, "name": name, "now": now})
	if err != nil {
		return UserID{}, err
	}
	return value[UserID](ctx, tx, `SELECT id FROM user_account WHERE email = @email`, pgx.StrictNamedArgs{"email": email})
}

// A place is the part of a membership that Enrol looks at.
type place struct {
	Role    Role
	Removed bool
}

// join makes the membership where it is missing, and returns it as it is then.
func (s *System) join(ctx context.Context, tx pgx.Tx, org OrgID, user UserID, role Role) (made bool, m place, err error) {
	n, err := exec(ctx, tx, `
		INSERT INTO member (org_id, user_id, role, created_at)
		SELECT @org, @user, CASE WHEN EXISTS (SELECT FROM member WHERE org_id = @org) THEN coalesce(nullif(@role, ''), 'member') ELSE 'owner' END, @now
		ON CONFLICT (org_id, user_id) DO NOTHING`,
		pgx.StrictNamedArgs{"org": org, "user": user, "role": string(role), "now": s.db.Now()})
	if err != nil {
		return false, place{}, err
	}
	m, err = one[place](ctx, tx, `SELECT role, removed_at IS NOT NULL AS removed FROM member WHERE org_id = @org AND user_id = @user`,
		pgx.StrictNamedArgs{"org": org, "user": user})
	return n > 0, m, err
}

// The kinds of one-time link.
const (
	LinkWelcome = "welcome" // makes the first owner and organisation; works while no user exists
	LinkSignIn  = "signin"  // signs one user in and sets a password
)

// A Link is a one-time link that still works.
type Link struct {
	Kind   string
	UserID UserID // zero for a welcome link
	Email  string
	Name   string
}

// WelcomeLife is how long a welcome link works.
const WelcomeLife = 24 * time.Hour

// NewWelcomeLink makes a link for the first person, in place of those that were made before. The token goes into its URL
// and is not kept.
func (s *System) NewWelcomeLink(ctx context.Context) (token string, err error) {
	return s.newLink(ctx, LinkWelcome, UserID{}, WelcomeLife)
}

// NewSignInLink makes a one-time link for user that works for a time.
func (s *System) NewSignInLink(ctx context.Context, user UserID, lives time.Duration) (token string, err error) {
	return s.newLink(ctx, LinkSignIn, user, lives)
}

func (s *System) newLink(ctx context.Context, kind string, user UserID, lives time.Duration) (string, error) {
	token, hash := NewToken(LinkTokenPrefix)
	now := s.db.Now()
	err := s.run(ctx, func(tx pgx.Tx) error {
		if kind == LinkWelcome { // whoever has one founds the deployment, and each stands in what collects the output of a start
			if _, err := exec(ctx, tx, `DELETE FROM signin_link WHERE kind = 'welcome' AND used_at IS NULL`, nil); err != nil {
				return err
			}
		}
		_, err := exec(ctx, tx, `
			INSERT INTO signin_link (hash, kind, user_id, created_at, expires_at)
			VALUES (@hash, @kind, @user, @now, @expires)`,
			pgx.StrictNamedArgs{"hash": hash[:], "kind": kind, "user": user, "now": now, "expires": now.Add(lives)})
		return err
	})
	return token, err
}

// Link looks at a one-time link and uses nothing up. One that was used, has expired or never existed is
// reason.LinkNotValid.
func (s *System) Link(ctx context.Context, token string) (l Link, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		l, err = s.link(ctx, tx, token)
		return err
	})
	return l, err
}

func (s *System) link(ctx context.Context, tx pgx.Tx, token string) (Link, error) {
	hash := HashToken(token)
	l, err := one[Link](ctx, tx, `
		SELECT l.kind, l.user_id, coalesce(u.email, '') AS email, coalesce(u.name, '') AS name
		FROM signin_link l LEFT JOIN user_account u ON u.id = l.user_id
		WHERE l.hash = @hash AND l.used_at IS NULL AND (l.expires_at IS NULL OR l.expires_at > @now)
		  AND (l.kind <> 'welcome' OR NOT EXISTS (SELECT FROM user_account))`,
		pgx.StrictNamedArgs{"hash": hash[:], "now": s.db.Now()})
	if IsAbsent(err) {
		return Link{}, reason.Refuse(reason.LinkNotValid, "This link was used, or has expired.")
	}
	return l, err
}

// A Setup is what a person enters on the page of a one-time link.
type Setup struct {
	Name     string
	Password string // argon2id, PHC string form; "" with a passkey alone
	Email    string // of a welcome link only
	Org      string // of a welcome link only
	// Passkey is set beside the password, or in place of one: then Password is "". Nil: none is.
	Passkey *Passkey
	// User is who a welcome link makes, where a passkey was made for them already.
	User UserID
}

// UseLink spends a one-time link: a welcome link makes owner and organisation, a sign-in link sets the password, a
// passkey or both. A password that was there before ends either way. in.Passkey has its id then.
// Of two that spend one link at once, the second gets reason.LinkNotValid. A Setup that is refused spends nothing.
func (s *System) UseLink(ctx context.Context, token string, in Setup) (user UserID, err error) {
	err = s.run(ctx, func(tx pgx.Tx) error {
		// One at a time: neither one link twice, nor two welcome links that make two first owners.
		if _, err := tx.Exec(ctx, `LOCK TABLE signin_link IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return err
		}
		l, err := s.link(ctx, tx, token)
		if err != nil {
			return err
		}
		if in.Name != "" {
			if err := CheckName("name", in.Name, 80); err != nil {
				return err
			}
		}
		if in.Password == "" && in.Passkey == nil {
			return errors.New("a one-time link sets neither a password nor a passkey")
		}
		user = l.UserID
		if l.Kind == LinkWelcome {
			if user, err = s.found(ctx, tx, in); err != nil {
				return err
			}
		}
		hash := HashToken(token)
		// The user's other links end with it: they were made for the same purpose, and it is fulfilled.
		if _, err := exec(ctx, tx, `UPDATE signin_link SET used_at = @now WHERE used_at IS NULL AND (hash = @hash OR user_id = @user)`,
			pgx.StrictNamedArgs{"hash": hash[:], "user": user, "now": s.db.Now()}); err != nil {
			return err
		}
		if _, err := exec(ctx, tx, `
			UPDATE user_account SET password = @password, name = coalesce(nullif(@name, ''), name) WHERE id = @user`,
			pgx.StrictNamedArgs{"user": user, "password": in.Password, "name": in.Name}); err != nil {
			return err
		}
		if in.Passkey != nil {
			in.Passkey.UserID = user
			if *in.Passkey, err = s.addPasskey(ctx, tx, *in.Passkey); err != nil {
				return err
			}
		}
		// A new password ends every session that the old one began. It is set first: BeginWebSession holds the account's
		// row, so a sign-in with the old one is over by now, and this sees its session, or finds the new one.
		_, err = exec(ctx, tx, `DELETE FROM web_session WHERE user_id = @user`, pgx.StrictNamedArgs{"user": user})
		return err
	})
	return user, err
}

// found makes the first organisation and its owner.
func (s *System) found(ctx context.Context, tx pgx.Tx, in Setup) (UserID, error) {
	if err := CheckName("org", in.Org, 80); err != nil {
		return UserID{}, err
	}
	if err := CheckEmail(FoldEmail(in.Email)); err != nil {
		return UserID{}, err
	}
	o, _, err := s.organisation(ctx, tx, in.Org)
	if err != nil {
		return UserID{}, err
	}
	id := in.User
	if id.IsZero() {
		id = NewID[UserKind](s.db.Now())
	}
	user, err := s.account(ctx, tx, id, in.Email, in.Name)
	if err != nil {
		return UserID{}, err
	}
	_, _, err = s.join(ctx, tx, o.ID, user, RoleOwner)
	return user, err
}

// SetPassword replaces a user's password hash by one made with newer parameters, where it is still old. One that was
// changed meanwhile stays, and that is no error.
func (s *System) SetPassword(ctx context.Context, user UserID, old, hash string) error {
	return s.run(ctx, func(tx pgx.Tx) error {
		_, err := exec(ctx, tx, `UPDATE user_account SET password = @hash WHERE id = @user AND password = @old`,
			pgx.StrictNamedArgs{"user": user, "old": old, "hash": hash})
		return err
	})
}

// WebSession reads a browser session by the hash of its cookie. One that has run out is reason.NotFound.
func (s *System) WebSession(ctx context.Context, hash TokenHash) (data []byte, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		data, err = value[[]byte](ctx, tx, `SELECT data FROM web_session WHERE hash = @hash AND user_id IS NOT NULL AND expires_at > @now`,
			pgx.StrictNamedArgs{"hash": hash[:], "now": s.db.Now()})
		return err
	})
	return data, err
}

// BeginWebSession writes the browser session of a user who proved a password: the hash is the one that it was compared
// with. Where another was set meanwhile the session does not begin, and that is reason.NotFound.
func (s *System) BeginWebSession(ctx context.Context, hash TokenHash, user UserID, password string, data []byte, expires time.Time) error {
	return s.run(ctx, func(tx pgx.Tx) error {
		n, err := exec(ctx, tx, `
			INSERT INTO web_session (hash, user_id, data, expires_at)
			SELECT @hash::bytea, id, @data::bytea, @expires::timestamptz FROM user_account WHERE id = @user AND password = @password FOR SHARE
			ON CONFLICT (hash) DO UPDATE SET user_id = excluded.user_id, data = excluded.data, expires_at = excluded.expires_at`,
			pgx.StrictNamedArgs{"hash": hash[:], "user": user, "password": password, "data": data, "expires": expires})
		if err == nil && n == 0 {
			return reason.NotFound
		}
		return err
	})
}

// ChangeWebSession writes a browser session that is there. One that has ended is not brought back: it is
// reason.NotFound.
func (s *System) ChangeWebSession(ctx context.Context, hash TokenHash, data []byte, expires time.Time) error {
	return s.run(ctx, func(tx pgx.Tx) error {
		n, err := exec(ctx, tx, `UPDATE web_session SET data = @data, expires_at = @expires WHERE hash = @hash`,
			pgx.StrictNamedArgs{"hash": hash[:], "data": data, "expires": expires})
		if err == nil && n == 0 {
			return reason.NotFound
		}
		return err
	})
}

// DeleteWebSession ends a browser session.
func (s *System) DeleteWebSession(ctx context.Context, hash TokenHash) error {
	return s.run(ctx, func(tx pgx.Tx) error {
		_, err := exec(ctx, tx, `DELETE FROM web_session WHERE hash = @hash`, pgx.StrictNamedArgs{"hash": hash[:]})
		return err
	})
}

// Sweep deletes what ran out: browser sessions, one-time links, invites, runs, results and asks. What cannot be deleted of one
// keeps none of the others.
func (s *System) Sweep(ctx context.Context) error {
	now := pgx.StrictNamedArgs{"now": s.db.Now(), "bite": sweepBite}
	old := pgx.StrictNamedArgs{"old": s.db.Now().Add(-askKeep), "bite": sweepBite}
	return errors.Join(
		s.sweep(ctx, "one-time links", func(tx pgx.Tx) (int64, error) {
			return exec(ctx, tx, `
				DELETE FROM signin_link WHERE expires_at <= (
					SELECT max(expires_at) FROM (SELECT expires_at FROM signin_link WHERE expires_at <= @now ORDER BY expires_at LIMIT @bite) AS oldest)`, now)
		}),
		s.sweep(ctx, "browser sessions", func(tx pgx.Tx) (int64, error) {
			return exec(ctx, tx, `
				DELETE FROM web_session WHERE expires_at <= (
					SELECT max(expires_at) FROM (SELECT expires_at FROM web_session WHERE expires_at <= @now ORDER BY expires_at LIMIT @bite) AS oldest)`, now)
		}),
		s.sweep(ctx, "invites", func(tx pgx.Tx) (int64, error) {
			return exec(ctx, tx, `
				DELETE FROM invite WHERE expires_at <= (
					SELECT max(expires_at) FROM (SELECT expires_at FROM invite WHERE expires_at <= @now ORDER BY expires_at LIMIT @bite) AS oldest)`, now)
		}),
		s.sweep(ctx, "runs", func(tx pgx.Tx) (int64, error) {
			return exec(ctx, tx, `
				DELETE FROM run WHERE expires_at <= (
					SELECT max(expires_at) FROM (SELECT expires_at FROM run WHERE expires_at <= @now ORDER BY expires_at LIMIT @bite) AS oldest)`, now)
		}),
		s.sweep(ctx, "results", func(tx pgx.Tx) (int64, error) {
			return exec(ctx, tx, `
				DELETE FROM result WHERE expires_at <= (
					SELECT max(expires_at) FROM (SELECT expires_at FROM result WHERE expires_at <= @now ORDER BY expires_at LIMIT @bite) AS oldest)`, now)
		}),
		s.sweep(ctx, "asks", func(tx pgx.Tx) (int64, error) {
			return exec(ctx, tx, `
				DELETE FROM ask WHERE expires_at <= (
					SELECT max(expires_at) FROM (SELECT expires_at FROM ask WHERE expires_at <= @old ORDER BY expires_at LIMIT @bite) AS oldest)`, old)
		}),
	)
}

// sweepBite is how many rows go in one transaction: so few that results of megabytes each are gone within the time that a
// statement has.
const sweepBite = 200

// sweep runs bite, each time in a transaction of its own, until there is less than one left.
func (s *System) sweep(ctx context.Context, what string, bite func(pgx.Tx) (int64, error)) error {
	for n := int64(sweepBite); n >= sweepBite; {
		err := s.run(ctx, func(tx pgx.Tx) (err error) {
			n, err = bite(tx)
			return err
		})
		if err != nil {
			return fmt.Errorf("sweep %s: %w", what, err)
		}
	}
	return nil
}

// askKeep is how long an ask that is over can be looked at.
const askKeep = 30 * 24 * time.Hour

// AllOrganisations lists the ids of every organisation, for jobs that go through them one by one.
func (s *System) AllOrganisations(ctx context.Context) (orgs []OrgID, err error) {
	err = s.run(ctx, func(tx pgx.Tx) error {
		list, err := all[struct{ ID OrgID }](ctx, tx, `SELECT id FROM organisation ORDER BY id`, nil)
		orgs = make([]OrgID, len(list))
		for i, o := range list {
			orgs[i] = o.ID
		}
		return err
	})
	return orgs, err
}

// A SealKey is a data key of the gateway itself, wrapped by the master key.
type SealKey struct {
	ID        KeyID
	Wrapped   []byte
	CreatedAt time.Time
}

// SealKeys lists the gateway's data keys of one purpose, newest first.
func (s *System) SealKeys(ctx context.Context, purpose string) (keys []SealKey, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		keys, err = sealKeys(ctx, tx, purpose)
		return err
	})
	return keys, err
}

func sealKeys(ctx context.Context, tx pgx.Tx, purpose string) ([]SealKey, error) {
	return all[SealKey](ctx, tx, `
		SELECT id, wrapped, created_at FROM seal_key
		WHERE purpose = @purpose AND org_id IS NULL
		ORDER BY created_at DESC, id DESC`, pgx.StrictNamedArgs{"purpose": purpose})
}

// FreshSealKeys returns the keys of a purpose after making one where the newest is older than age, and dropping
// those older than keep. wrap makes and wraps a new key for the id it is given. Of many replicas one makes it.
func (s *System) FreshSealKeys(ctx context.Context, purpose string, age, keep time.Duration, wrap func(KeyID) ([]byte, error)) (keys []SealKey, err error) {
	err = s.run(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `LOCK TABLE seal_key IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return err
		}
		now := s.db.Now()
		if _, err := exec(ctx, tx, `DELETE FROM seal_key WHERE purpose = @purpose AND org_id IS NULL AND created_at < @before`,
			pgx.StrictNamedArgs{"purpose": purpose, "before": now.Add(-keep)}); err != nil {
			return err
		}
		if keys, err = sealKeys(ctx, tx, purpose); err != nil {
			return err
		}
		if len(keys) > 0 && now.Sub(keys[0].CreatedAt) < age {
			return nil
		}
		id := NewID[KeyKind](now)
		wrapped, err := wrap(id)
		if err != nil {
			return err
		}
		if _, err := exec(ctx, tx, `INSERT INTO seal_key (id, purpose, wrapped, created_at) VALUES (@id, @purpose, @wrapped, @now)`,
			pgx.StrictNamedArgs{"id": id, "purpose": purpose, "wrapped": wrapped, "now": now}); err != nil {
			return err
		}
		keys, err = sealKeys(ctx, tx, purpose)
		return err
	})
	return keys, err
}

// organisationKey is the purpose of the key that an organisation has for all that is sealed of it.
const organisationKey = "organisation"

// OrganisationKey returns the wrapped key of an organisation, after storing what wrap makes where it has none. Of many
// replicas one makes it. An organisation that is gone is reason.NotFound.
func (s *System) OrganisationKey(ctx context.Context, org OrgID, wrap func() ([]byte, error)) (wrapped []byte, err error) {
	err = s.run(ctx, func(tx pgx.Tx) error {
		if wrapped, err = ofOrganisation(ctx, tx, org); !IsAbsent(err) {
			return err
		}
		if _, err := tx.Exec(ctx, `LOCK TABLE seal_key IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return err
		}
		if wrapped, err = ofOrganisation(ctx, tx, org); !IsAbsent(err) {
			return err
		}
		if wrapped, err = wrap(); err != nil {
			return err
		}
		now := s.db.Now()
		_, err := exec(ctx, tx, `
			INSERT INTO seal_key (id, purpose, org_id, wrapped, created_at) VALUES (@id, @purpose, @org, @wrapped, @now)`,
			pgx.StrictNamedArgs{"id": NewID[KeyKind](now), "purpose": organisationKey, "org": org, "wrapped": wrapped, "now": now})
		return err
	})
	return wrapped, err
}

func ofOrganisation(ctx context.Context, tx pgx.Tx, org OrgID) ([]byte, error) {
	return value[[]byte](ctx, tx, `SELECT wrapped FROM seal_key WHERE purpose = @purpose AND org_id = @org`,
		pgx.StrictNamedArgs{"purpose": organisationKey, "org": org})
}

// SchemaVersion is the newest migration the database has: 0 where none ran.
func (s *System) SchemaVersion(ctx context.Context) (v int64, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		v, err = value[int64](ctx, tx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`, nil)
		return err
	})
	// Before the first migration there is no such table (42P01) and, in a new cluster, no such role (22023).
	switch code(err) {
	case "42P01", "22023":
		return 0, nil
	case "42501": // insufficient_privilege
		return 0, errors.New("the login is not a member of graft_system: run graft migrate")
	}
	return v, err
}
