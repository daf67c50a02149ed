package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// challengeLife is how long a browser has to sign what it was asked to.
const challengeLife = 5 * time.Minute

// newRelyingParty is who passkeys are made for (WebAuthn Level 3 §4, Relying Party): the host of the origin, whatever its
// port. Nil where the host is an address, which no browser makes passkeys for.
func newRelyingParty(origin *url.URL) (*webauthn.WebAuthn, error) {
	if net.ParseIP(origin.Hostname()) != nil {
		return nil, nil //nolint:nilnil // there is none, and nothing is wrong
	}
	return webauthn.New(&webauthn.Config{
		RPID: origin.Hostname(), RPDisplayName: "Graft", RPOrigins: []string{origin.Scheme + "://" + origin.Host},
		AttestationPreference: protocol.PreferNoAttestation,
		// The passkey is all that is asked for: it must say whose it is, and its device who holds it.
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: protocol.ResidentKeyRequired(),
			UserVerification: protocol.VerificationRequired,
		},
	})
}

// hasPasskeys reports whether passkeys work at the address that the request came to, which may be another than the
// origin's where that is on this machine.
func (h *Handler) hasPasskeys(r *http.Request) bool {
	at := url.URL{Host: r.Host}
	return h.party != nil && at.Hostname() == h.party.Config.RPID
}

// A person is a user as WebAuthn knows one.
type person struct {
	id          store.UserID
	email, name string
	passkeys    []store.Passkey
}

// WebAuthnID implements webauthn.User.
func (p person) WebAuthnID() []byte {
	b := p.id.Bytes()
	return b[:]
}

// WebAuthnName implements webauthn.User: what a device lists the passkey under.
func (p person) WebAuthnName() string { return p.email }

// WebAuthnDisplayName implements webauthn.User.
func (p person) WebAuthnDisplayName() string {
	if p.name == "" {
		return p.email
	}
	return p.name
}

// WebAuthnCredentials implements webauthn.User.
func (p person) WebAuthnCredentials() []webauthn.Credential {
	list := make([]webauthn.Credential, len(p.passkeys))
	for i, k := range p.passkeys {
		list[i] = webauthn.Credential{
			ID: k.Credential, PublicKey: k.PublicKey, Flags: webauthn.CredentialFlags{BackupEligible: k.BackupEligible},
			Authenticator: webauthn.Authenticator{SignCount: k.SignCount},
		}
		for _, t := range k.Transports {
			list[i].Transport = append(list[i].Transport, protocol.AuthenticatorTransport(t))
		}
	}
	return list
}

// person is a user with their passkeys.
func (h *Handler) person(ctx context.Context, user store.UserID, email, name string) (person, error) {
	list, err := h.c.DB.System().Passkeys(ctx, user)
	if err != nil {
		return person{}, fmt.Errorf("load passkeys of %s: %w", user, err)
	}
	return person{user, email, name, list}, nil
}

// askToCreate asks the browser for a new passkey of p's.
func (h *Handler) askToCreate(w http.ResponseWriter, r *http.Request, p person) error {
	if !h.hasPasskeys(r) {
		return reason.NotFound
	}
	have := webauthn.Credentials(p.WebAuthnCredentials()).CredentialDescriptors()
	options, session, err := h.party.BeginRegistration(p, webauthn.WithExclusions(have))
	if err != nil {
		return fmt.Errorf("begin passkey registration: %w", err)
	}
	return h.challenge(w, r, session, map[string]any{"create": options.Response})
}

// askToSign asks the browser to sign with a passkey of p's, or with anybody's where p is zero: then the challenge says
// nothing of any account.
func (h *Handler) askToSign(w http.ResponseWriter, r *http.Request, p person) error {
	if !h.hasPasskeys(r) {
		return reason.NotFound
	}
	var options *protocol.CredentialAssertion
	var session *webauthn.SessionData
	var err error
	switch {
	case p.id.IsZero():
		options, session, err = h.party.BeginDiscoverableLogin()
	case len(p.passkeys) == 0:
		return reason.NotFound
	default:
		options, session, err = h.party.BeginLogin(p)
	}
	if err != nil {
		return fmt.Errorf("begin passkey assertion: %w", err)
	}
	return h.challenge(w, r, session, map[string]any{"get": options.Response})
}

// challenge keeps what the browser is asked for, bound to it by a cookie, and answers the script with it.
func (h *Handler) challenge(w http.ResponseWriter, r *http.Request, session *webauthn.SessionData, options any) error {
	data, err := json.Marshal(session)
	if err != nil {
		return fmt.Errorf("write passkey challenge: %w", err)
	}
	body, err := json.Marshal(options)
	if err != nil {
		return fmt.Errorf("write passkey options: %w", err)
	}
	token, hash := store.NewToken(store.PasskeyTokenPrefix)
	if err := h.c.DB.System().HoldChallenge(r.Context(), hash, data, h.c.Now().Add(challengeLife)); err != nil {
		return fmt.Errorf("hold passkey challenge: %w", err)
	}
	h.setChallengeCookie(w, token, int(challengeLife/time.Second))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if _, err := w.Write(body); err != nil {
		h.c.Log.DebugContext(r.Context(), "browser left", slog.Any("err", err))
	}
	return nil
}

func (h *Handler) setChallengeCookie(w http.ResponseWriter, token string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: h.cookieName() + "-passkey", Value: token, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: h.secure, SameSite: http.SameSiteStrictMode,
	})
}

// takeChallenge is what this browser was asked for. It is used up, whatever comes of it.
func (h *Handler) takeChallenge(w http.ResponseWriter, r *http.Request) (s webauthn.SessionData, err error) {
	late := reason.Refuse(reason.SignInFailed, "The passkey was not used within five minutes, or was asked for in another browser. Try again.")
	c, err := r.Cookie(h.cookieName() + "-passkey")
	if err != nil || !h.hasPasskeys(r) || !store.WellFormed(store.PasskeyTokenPrefix, c.Value) {
		return s, late
	}
	h.setChallengeCookie(w, "", -1)
	data, err := h.c.DB.System().TakeChallenge(r.Context(), store.HashToken(c.Value))
	if store.IsAbsent(err) {
		return s, late
	}
	if err != nil {
		return s, fmt.Errorf("take passkey challenge: %w", err)
	}
	return s, json.Unmarshal(data, &s)
}

// created reads the new passkey that the form brings for user; zero takes whoever the browser was asked for one for.
func (h *Handler) created(w http.ResponseWriter, r *http.Request, user store.UserID) (store.Passkey, error) {
	session, err := h.takeChallenge(w, r)
	if err != nil {
		return store.Passkey{}, err
	}
	p := person{id: user}
	if user.IsZero() && len(session.UserID) == len(user.Bytes()) {
		p.id = store.IDFromBytes[store.UserKind]([16]byte(session.UserID))
	}
	answer, err := protocol.ParseCredentialCreationResponseBytes([]byte(r.PostForm.Get("passkey")))
	if err != nil {
		return store.Passkey{}, h.notProven(r.Context(), err)
	}
	c, err := h.party.CreateCredential(p, session, answer)
	if err != nil {
		return store.Passkey{}, h.notProven(r.Context(), err)
	}
	k := store.Passkey{
		UserID: p.id, Credential: c.ID, PublicKey: c.PublicKey, SignCount: c.Authenticator.SignCount, BackupEligible: c.Flags.BackupEligible,
	}
	for _, t := range c.Transport[:min(len(c.Transport), 8)] {
		k.Transports = append(k.Transports, string(t))
	}
	return k, nil
}

// signed finds whose passkey signed what the form brings. Whatever is wrong with it is one refusal.
func (h *Handler) signed(w http.ResponseWriter, r *http.Request) (store.Passkey, error) {
	session, err := h.takeChallenge(w, r)
	if err != nil {
		return store.Passkey{}, err
	}
	ctx := r.Context()
	answer, err := protocol.ParseCredentialRequestResponseBytes([]byte(r.PostForm.Get("passkey")))
	if err != nil {
		return store.Passkey{}, h.notProven(ctx, err)
	}
	user, err := h.c.DB.System().PasskeyUser(ctx, answer.RawID)
	if store.IsAbsent(err) {
		return store.Passkey{}, h.notProven(ctx, err)
	}
	if err != nil {
		return store.Passkey{}, fmt.Errorf("find passkey: %w", err)
	}
	p, err := h.person(ctx, user, "", "")
	if err != nil {
		return store.Passkey{}, err
	}
	if len(session.UserID) == 0 {
		_, _, err = h.party.ValidatePasskeyLogin(func([]byte, []byte) (webauthn.User, error) { return p, nil }, session, answer)
	} else {
		_, err = h.party.ValidateLogin(p, session, answer)
	}
	if err != nil {
		return store.Passkey{}, h.notProven(ctx, err)
	}
	for _, k := range p.passkeys {
		if string(k.Credential) == string(answer.RawID) {
			return k, h.count(ctx, k, answer.Response.AuthenticatorData.Counter)
		}
	}
	return store.Passkey{}, h.notProven(ctx, reason.NotFound) // removed meanwhile
}

// count notes that k signed. One whose count did not grow is refused: it may have been copied.
func (h *Handler) count(ctx context.Context, k store.Passkey, count uint32) error {
	grew, err := h.c.DB.System().UsePasskey(ctx, k.ID, count)
	switch {
	case store.IsAbsent(err):
		return h.notProven(ctx, err)
	case err != nil:
		return fmt.Errorf("use passkey %s: %w", k.ID, err)
	case grew:
		return nil
	}
	h.c.Log.WarnContext(ctx, "passkey refused: its count did not grow, so it may have been copied", slog.String("user", k.UserID.String()),
		slog.String("passkey", k.ID.String()), slog.Uint64("count", uint64(count)), slog.Uint64("before", uint64(k.SignCount)),
		slog.String("request_id", h.c.RequestID(ctx)))
	e := audit.Entry{Kind: audit.Change, Outcome: string(reason.SignInFailed), Line: fmt.Sprintf("Refused passkey %s, which may have been copied", k.Name)}
	if err := h.recordEverywhere(ctx, k.UserID, e); err != nil {
		return err
	}
	return h.notProven(ctx, errors.New("count did not grow"))
}

// notProven is what the holder of a passkey that does not fit is told. Why is nothing that they could mend: it is for
// whoever runs Graft and wonders.
func (h *Handler) notProven(ctx context.Context, why error) error {
	attrs := []any{slog.Any("err", why), slog.String("request_id", h.c.RequestID(ctx))}
	var detail *protocol.Error
	if errors.As(why, &detail) {
		attrs = append(attrs, slog.String("detail", detail.DevInfo))
	}
	h.c.Log.DebugContext(ctx, "passkey not proven", attrs...)
	return reason.Refuse(reason.SignInFailed, "That passkey does not belong to an account here. Try another, or sign in with your password.")
}
