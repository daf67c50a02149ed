package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/reason"
)

// A Passkey is what a person signs in with by a device of theirs (WebAuthn Level 3 §4, credential record).
type Passkey struct {
	ID             PasskeyID
	UserID         UserID
	Credential     []byte // its id, as the authenticator made it
	Name           string // as the person calls it
	PublicKey      []byte // a COSE_Key
	SignCount      uint32 // how often it signed; 0 for good where it does not count
	BackupEligible bool   // whether it may be on several devices
	Transports     []string
	CreatedAt      time.Time
	LastUsedAt     *time.Time
}

// passkeysMost is how many passkeys a person has at most.
const passkeysMost = 20

// AddPasskey keeps a new passkey of p.UserID, and returns it with its id. A credential that is there already is
// reason.NameTaken.
func (s *System) AddPasskey(ctx context.Context, p Passkey) (Passkey, error) {
	if err := CheckName("name", p.Name, 80); err != nil {
		return Passkey{}, err
	}
	err := s.run(ctx, func(tx pgx.Tx) (err error) {
		if _, err := s.ways(ctx, tx, p.UserID, ""); err != nil {
			return err
		}
		p, err = s.addPasskey(ctx, tx, p)
		return err
	})
	if code(err) == "23505" { // unique_violation
		return Passkey{}, reason.Refuse(reason.NameTaken, "This passkey is here already.").Field("passkey")
	}
	return p, err
}

func (s *System) addPasskey(ctx context.Context, tx pgx.Tx, p Passkey) (Passkey, error) {
	p.CreatedAt = s.db.Now()
	p.ID = NewID[PasskeyKind](p.CreatedAt)
	n, err := exec(ctx, tx, `
		INSERT INTO user_passkey (id, user_id, credential, name, public_key, sign_count, backup_eligible, transports, created_at)
		SELECT @id, @user, @credential, @name, @key, @count, @eligible, @transports, @now
		WHERE (SELECT count(*) FROM user_passkey WHERE user_id = @user) < @most`,
		pgx.StrictNamedArgs{
			"id": p.ID, "user": p.UserID, "credential": p.Credential, "name": p.Name, "key": p.PublicKey, "count": int64(p.SignCount),
			"eligible": p.BackupEligible, "transports": append([]string{}, p.Transports...), "now": p.CreatedAt, "most": passkeysMost,
		})
	if err == nil && n == 0 {
		return Passkey{}, reason.Refuse(reason.InputInvalid, "You have %d passkeys, which is the most. Remove one that you no longer use.", passkeysMost).Field("passkey")
	}
	return p, err
}

// ways are the ways that a user has to sign in.
type ways struct {
	Password   bool
	Passkeys   int64
	Identities int64
}

// one reports whether there is one alone, and no password.
func (w ways) one() bool { return !w.Password && w.Passkeys+w.Identities == 1 }

// ways counts them and holds the account's row, so that of two changes at once neither misses the other. Identities are
// those at issuer.
func (s *System) ways(ctx context.Context, tx pgx.Tx, user UserID, issuer string) (w ways, err error) {
	if w.Password, err = value[bool](ctx, tx, `SELECT password <> '' FROM user_account WHERE id = @user FOR UPDATE`,
		pgx.StrictNamedArgs{"user": user}); err != nil {
		return ways{}, err
	}
	if w.Passkeys, err = value[int64](ctx, tx, `SELECT count(*) FROM user_passkey WHERE user_id = @user`, pgx.StrictNamedArgs{"user": user}); err != nil {
		return ways{}, err
	}
	w.Identities, err = value[int64](ctx, tx, `SELECT count(*) FROM user_identity WHERE user_id = @user AND issuer = @issuer`,
		pgx.StrictNamedArgs{"user": user, "issuer": issuer})
	return w, err
}

// Passkeys lists a user's passkeys, the oldest first.
func (s *System) Passkeys(ctx context.Context, user UserID) (list []Passkey, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		list, err = all[Passkey](ctx, tx, `
			SELECT id, user_id, credential, name, public_key, sign_count, backup_eligible, transports, created_at, last_used_at
			FROM user_passkey WHERE user_id = @user ORDER BY created_at, id`, pgx.StrictNamedArgs{"user": user})
		return err
	})
	return list, err
}

// PasskeyUser finds whose passkey has that credential id.
func (s *System) PasskeyUser(ctx context.Context, credential []byte) (user UserID, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		user, err = value[UserID](ctx, tx, `SELECT user_id FROM user_passkey WHERE credential = @credential`,
			pgx.StrictNamedArgs{"credential": credential})
		return err
	})
	return user, err
}

// UsePasskey notes that a passkey has just signed, as its count says. Its second result is false where the count did not
// grow: then two have signed with one passkey, of which one is a copy (WebAuthn Level 3 §6.1.1), and nothing is noted.
// A passkey that is gone is reason.NotFound.
func (s *System) UsePasskey(ctx context.Context, id PasskeyID, count uint32) (grew bool, err error) {
	err = s.run(ctx, func(tx pgx.Tx) error {
		before, err := value[int64](ctx, tx, `SELECT sign_count FROM user_passkey WHERE id = @id FOR UPDATE`, pgx.StrictNamedArgs{"id": id})
		if err != nil {
			return err
		}
		if grew = int64(count) > before || count == 0 && before == 0; !grew {
			return nil
		}
		_, err = exec(ctx, tx, `UPDATE user_passkey SET sign_count = @count, last_used_at = @now WHERE id = @id`,
			pgx.StrictNamedArgs{"id": id, "count": int64(count), "now": s.db.Now()})
		return err
	})
	return grew && err == nil, err
}

// RenamePasskey gives a user's passkey another name.
func (s *System) RenamePasskey(ctx context.Context, user UserID, id PasskeyID, name string) error {
	if err := CheckName("name", name, 80); err != nil {
		return err
	}
	return s.run(ctx, func(tx pgx.Tx) error {
		n, err := exec(ctx, tx, `UPDATE user_passkey SET name = @name WHERE id = @id AND user_id = @user`,
			pgx.StrictNamedArgs{"id": id, "user": user, "name": name})
		if err == nil && n == 0 {
			return reason.NotFound
		}
		return err
	})
}

// RemovePasskey deletes a user's passkey. Where it is their last way to sign in, with no password and no identity at
// issuer, it stays: that is reason.InputInvalid.
func (s *System) RemovePasskey(ctx context.Context, user UserID, id PasskeyID, issuer string) error {
	return s.run(ctx, func(tx pgx.Tx) error {
		w, err := s.ways(ctx, tx, user, issuer)
		if err != nil {
			return err
		}
		n, err := exec(ctx, tx, `DELETE FROM user_passkey WHERE id = @id AND user_id = @user`, pgx.StrictNamedArgs{"id": id, "user": user})
		switch {
		case err != nil:
			return err
		case n == 0:
			return reason.NotFound
		case w.one():
			return reason.Refuse(reason.InputInvalid, "This is your only way to sign in. Set a password or add another passkey first.")
		}
		return nil
	})
}

// BeginPasskeySession writes the browser session of a user who proved to have a passkey. Where it was removed meanwhile
// the session does not begin, and that is reason.NotFound.
func (s *System) BeginPasskeySession(ctx context.Context, hash TokenHash, user UserID, id PasskeyID, data []byte, expires time.Time) error {
	return s.run(ctx, func(tx pgx.Tx) error {
		n, err := exec(ctx, tx, `
			INSERT INTO web_session (hash, user_id, data, expires_at)
			SELECT @hash::bytea, user_id, @data::bytea, @expires::timestamptz FROM user_passkey WHERE id = @id AND user_id = @user FOR SHARE`,
			pgx.StrictNamedArgs{"hash": hash[:], "user": user, "id": id, "data": data, "expires": expires})
		if err == nil && n == 0 {
			return reason.NotFound
		}
		return err
	})
}

// HoldChallenge keeps what a browser was asked to sign, or was sent to a provider for, by the hash of its cookie. It is a browser session of nobody, so
// that it is swept with them, and no session that WebSession reads.
func (s *System) HoldChallenge(ctx context.Context, hash TokenHash, data []byte, expires time.Time) error {
	return s.run(ctx, func(tx pgx.Tx) error {
		_, err := exec(ctx, tx, `INSERT INTO web_session (hash, data, expires_at) VALUES (@hash, @data, @expires)`,
			pgx.StrictNamedArgs{"hash": hash[:], "data": data, "expires": expires})
		return err
	})
}

// TakeChallenge returns what HoldChallenge kept, once. One that has run out is reason.NotFound.
func (s *System) TakeChallenge(ctx context.Context, hash TokenHash) (data []byte, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		data, err = value[[]byte](ctx, tx, `DELETE FROM web_session WHERE hash = @hash AND user_id IS NULL AND expires_at > @now RETURNING data`,
			pgx.StrictNamedArgs{"hash": hash[:], "now": s.db.Now()})
		return err
	})
	return data, err
}
