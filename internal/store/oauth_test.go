package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// clientID is who asks for grants here.
const clientID = "https://app.example/client.json"

func anyVerifier(string) bool { return true }

// request stores an authorization request that waits for an answer.
func request(t *testing.T, db *store.DB) store.TokenHash {
	t.Helper()
	_, hash := store.NewToken(store.ConsentTokenPrefix)
	r := store.OAuthRequest{Hash: hash, Browser: sumHash("browser"), Form: "form", Query: "a=b", CreatedAt: db.Now(), ExpiresAt: db.Now().Add(10 * time.Minute)}
	if err := db.System().AddOAuthRequest(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return hash
}

func sumHash(s string) store.TokenHash { return store.HashToken(s) }

// grantTo makes a grant of an agent, and returns its code with whose it is.
func grantTo(t *testing.T, db *store.DB, c store.Caller, agent store.AgentID) (store.TokenHash, store.Caller) {
	t.Helper()
	person := c
	if person.Via == store.ViaCLI {
		person.Via = store.ViaSession
	}
	n := newGrant(request(t, db), agent)
	var code string
	do(t, db, person, func(tx *store.Tx) (err error) {
		_, code, err = tx.AllowRequest(t.Context(), n)
		return err
	})
	hash := store.HashToken(code)
	g, err := db.System().OAuthCode(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	return hash, holder(g)
}

// holder is who acts by what was given of a grant.
func holder(g store.GrantOf) store.Caller {
	return store.Caller{Org: g.Org, User: g.User, Agent: g.Agent, Grant: g.Grant, Role: g.Role, Via: store.ViaBearer}
}

func newGrant(r store.TokenHash, agent store.AgentID) store.NewGrant {
	return store.NewGrant{
		Request: r, Agent: agent, Name: "App", ClientID: clientID, ClientName: "An App", RedirectURI: "https://app.example/cb",
		Challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", Scope: "mcp", CodeLives: 10 * time.Minute,
	}
}

// plantGrant leaves a row in each table of a grant.
func plantGrant(t *testing.T, db *store.DB, c store.Caller, a store.Agent) {
	t.Helper()
	hash, self := grantTo(t, db, c, a.ID)
	do(t, db, self, func(tx *store.Tx) error {
		if _, err := tx.RedeemCode(t.Context(), store.Redemption{Hash: hash, ClientID: clientID, Verify: anyVerifier, Refresh: sumHash(a.ID.String())}); err != nil {
			return err
		}
		return tx.DenyToken(t.Context(), store.NewID[store.TokenKind](db.Now()), db.Now().Add(time.Hour))
	})
	if outcome, _, err := db.RotateToken(t.Context(), self, store.Rotation{
		Hash: sumHash(a.ID.String()), ClientID: clientID, Next: sumHash(a.ID.String() + " next"), Answer: []byte("sealed"),
	}); outcome != store.Given || err != nil {
		t.Fatalf("RotateToken() = %v, %v", outcome, err)
	}
}

// house is an organisation with an agent, on a clock that can be moved.
type oauthHouse struct {
	dsn   string
	db    *store.DB
	clock *clock
	c     store.Caller
	agent store.AgentID
}

func newOAuthHouse(t *testing.T) oauthHouse {
	t.Helper()
	k := newClock()
	dsn := storetest.PrivateURL(t) // its sweep is everybody's
	db := storetest.Open(t, dsn, k.now)
	c := storetest.Organisation(t, db)
	a, _ := storetest.Agent(t, db, c, "Worker")
	return oauthHouse{dsn, db, k, c, a.ID}
}

func (h oauthHouse) redeem(t *testing.T, self store.Caller, r store.Redemption) store.Outcome {
	t.Helper()
	return must(t, h.db, self, func(tx *store.Tx) (store.Outcome, error) { return tx.RedeemCode(t.Context(), r) })
}

func TestACodeIsRedeemedOnce(t *testing.T) {
	t.Parallel()
	h := newOAuthHouse(t)
	hash, self := grantTo(t, h.db, h.c, h.agent)
	right := store.Redemption{Hash: hash, ClientID: clientID, RedirectURI: "https://app.example/cb", Verify: anyVerifier, Refresh: sumHash("r")}
	with := func(change func(*store.Redemption)) store.Redemption {
		r := right
		change(&r)
		return r
	}
	for _, step := range []struct {
		name string
		r    store.Redemption
		want store.Outcome
	}{
		{"another client", with(func(r *store.Redemption) { r.ClientID = "cli_other" }), store.Foreign},
		{"an unknown code", with(func(r *store.Redemption) { r.Hash = sumHash("unknown") }), store.Dead},
		{"another redirect URI", with(func(r *store.Redemption) { r.RedirectURI = "https://app.example/cb/" }), store.NotSent},
		{"a wrong verifier", with(func(r *store.Redemption) { r.Verify = func(string) bool { return false } }), store.NotVerified},
		{"without a redirect URI", with(func(r *store.Redemption) { r.RedirectURI = "" }), store.Given},
		{"again by another client", with(func(r *store.Redemption) { r.ClientID = "cli_other" }), store.Foreign},
		{"again", right, store.Reused},
		{"once more", right, store.Dead},
	} {
		if got := h.redeem(t, self, step.r); got != step.want {
			t.Errorf("%s: RedeemCode() = %v, want %v", step.name, got, step.want)
		}
	}
	if _, err := h.db.System().OAuthToken(t.Context(), sumHash("r")); !store.IsAbsent(err) {
		t.Errorf("the refresh token of a code that was used twice is live: %v", err)
	}
	list := must(t, h.db, h.c, func(tx *store.Tx) ([]store.Grant, error) { return tx.Grants(t.Context(), h.agent) })
	if len(list) != 1 || list[0].Cause != store.GrantCodeReuse || list[0].EndedAt == nil || !list[0].EndedBy.IsZero() {
		t.Errorf("Grants() = %+v, want one that ended by its code's reuse", list)
	}
}

func TestACodeSurvivesFourWrongVerifiersAndDiesOfFive(t *testing.T) {
	t.Parallel()
	for wrong, want := range map[int]store.Outcome{4: store.Given, 5: store.Dead} {
		h := newOAuthHouse(t)
		hash, self := grantTo(t, h.db, h.c, h.agent)
		for range wrong {
			r := store.Redemption{Hash: hash, ClientID: clientID, Verify: func(string) bool { return false }, Refresh: sumHash("x")}
			if got := h.redeem(t, self, r); got != store.NotVerified {
				t.Errorf("a wrong verifier: RedeemCode() = %v, want %v", got, store.NotVerified)
			}
		}
		if got := h.redeem(t, self, store.Redemption{Hash: hash, ClientID: clientID, Verify: anyVerifier, Refresh: sumHash(fmt.Sprint("r", wrong))}); got != want {
			t.Errorf("the right verifier after %d wrong ones: RedeemCode() = %v, want %v", wrong, got, want)
		}
	}
}

func TestACodeLivesTenMinutes(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]store.Outcome{10*time.Minute - time.Second: store.Given, 10 * time.Minute: store.Dead} {
		h := newOAuthHouse(t)
		hash, self := grantTo(t, h.db, h.c, h.agent)
		h.clock.pass(age)
		if got := h.redeem(t, self, store.Redemption{Hash: hash, ClientID: clientID, Verify: anyVerifier, Refresh: sumHash(age.String())}); got != want {
			t.Errorf("after %v: RedeemCode() = %v, want %v", age, got, want)
		}
	}
}

// refreshed is a house with a refresh token called "r".
func refreshed(t *testing.T) (h oauthHouse, self store.Caller, first store.TokenHash) {
	t.Helper()
	h = newOAuthHouse(t)
	hash, self := grantTo(t, h.db, h.c, h.agent)
	_, first = store.NewToken(store.RefreshTokenPrefix)
	if got := h.redeem(t, self, store.Redemption{Hash: hash, ClientID: clientID, Verify: anyVerifier, Refresh: first}); got != store.Given {
		t.Fatalf("RedeemCode() = %v", got)
	}
	return h, self, first
}

type rotated struct {
	outcome store.Outcome
	answer  string
}

func (h oauthHouse) rotate(t *testing.T, self store.Caller, old, next store.TokenHash, answer string) rotated {
	t.Helper()
	outcome, got, err := h.db.RotateToken(t.Context(), self, store.Rotation{
		Hash: old, ClientID: clientID, Within: store.RefreshWindow, Next: next, Answer: []byte(answer),
	})
	if err != nil {
		t.Fatal(err)
	}
	return rotated{outcome, string(got)}
}

func TestARetiredTokenAnswersItsPairForThirtySeconds(t *testing.T) {
	t.Parallel()
	h, self, first := refreshed(t)
	second, third := store.HashToken(t.Name()+"2"), store.HashToken(t.Name()+"3")
	step := func(name string, got, want rotated) {
		t.Helper()
		if got != want {
			t.Errorf("%s: RotateToken() = %+v, want %+v", name, got, want)
		}
	}
	step("first", h.rotate(t, self, first, second, "one"), rotated{store.Given, "one"})
	h.clock.pass(20 * time.Second)
	step("its successor", h.rotate(t, self, second, third, "two"), rotated{store.Given, "two"})
	h.clock.pass(9 * time.Second)
	step("first again at 29 s, after its successor was used", h.rotate(t, self, first, store.HashToken("x"), "other"), rotated{store.Repeated, "one"})
	h.clock.pass(2 * time.Second)
	if err := h.db.System().SweepOAuth(t.Context()); err != nil {
		t.Fatal(err)
	}
	step("its successor at 11 s", h.rotate(t, self, second, store.HashToken("y"), "other"), rotated{store.Repeated, "two"})
	step("first again at 31 s", h.rotate(t, self, first, store.HashToken("z"), "other"), rotated{store.Reused, ""})
	step("the newest then", h.rotate(t, self, third, store.HashToken("w"), "other"), rotated{store.Dead, ""})
	list := must(t, h.db, h.c, func(tx *store.Tx) ([]store.Grant, error) { return tx.Grants(t.Context(), h.agent) })
	if len(list) != 1 || list[0].Cause != store.GrantTokenReuse {
		t.Errorf("Grants() = %+v, want one that ended by a token's reuse", list)
	}
}

func TestNothingIsAnsweredAgainOnceTheGrantHasEnded(t *testing.T) {
	t.Parallel()
	h, self, first := refreshed(t)
	second := store.HashToken(t.Name())
	h.rotate(t, self, first, second, "one")
	do(t, h.db, self, func(tx *store.Tx) error { return tx.RevokeByClient(t.Context(), "cli_other") })
	if got := h.rotate(t, self, first, store.HashToken("x"), "other"); got.outcome != store.Repeated {
		t.Errorf("after another client's revocation RotateToken() = %+v, want it repeated", got)
	}
	do(t, h.db, self, func(tx *store.Tx) error { return tx.RevokeByClient(t.Context(), clientID) })
	if got := h.rotate(t, self, first, store.HashToken("y"), "other"); got.outcome != store.Dead || got.answer != "" {
		t.Errorf("after the revocation RotateToken() = %+v, want it dead", got)
	}
}

func TestFiftyRefreshesAtOnceAreOne(t *testing.T) {
	t.Parallel()
	h, self, first := refreshed(t)
	var all sync.WaitGroup
	answers := make([]rotated, 50)
	for i := range answers {
		all.Go(func() {
			answers[i] = h.rotate(t, self, first, store.HashToken(fmt.Sprint(t.Name(), i)), fmt.Sprint("answer ", i))
		})
	}
	all.Wait()
	given := ""
	for _, a := range answers {
		if a.outcome == store.Given {
			if given != "" {
				t.Errorf("two were given: %q and %q", given, a.answer)
			}
			given = a.answer
		}
	}
	for _, a := range answers {
		if a.answer != given || a.outcome != store.Given && a.outcome != store.Repeated {
			t.Errorf("RotateToken() = %+v, want %q", a, given)
		}
	}
}

func TestADeniedTokenIsNobodys(t *testing.T) {
	t.Parallel()
	h, self, _ := refreshed(t)
	sys, jti, other := h.db.System(), store.NewID[store.TokenKind](h.db.Now()), store.NewID[store.TokenKind](h.db.Now())
	live := func(jti store.TokenID) error {
		g, err := sys.LiveGrant(t.Context(), self.Grant, jti)
		if err == nil && holder(g) != self {
			t.Errorf("LiveGrant() = %+v, want %+v", holder(g), self)
		}
		return err
	}
	if err := live(jti); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		do(t, h.db, self, func(tx *store.Tx) error { return tx.DenyToken(t.Context(), jti, h.db.Now().Add(time.Hour)) })
	}
	if err := live(jti); !store.IsAbsent(err) {
		t.Errorf("LiveGrant() of a denied token = %v, want %v", err, reason.NotFound)
	}
	if err := live(other); err != nil {
		t.Errorf("LiveGrant() of another token = %v", err)
	}
	h.clock.pass(2*time.Hour + time.Second)
	if err := sys.SweepOAuth(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := live(jti); err != nil { // whatever it says has run out by itself
		t.Errorf("LiveGrant() after the sweep = %v", err)
	}
}

func TestARequestIsAnsweredOnceAndKeptAsItWasProven(t *testing.T) {
	t.Parallel()
	h := newOAuthHouse(t)
	sys, hash := h.db.System(), request(t, h.db)
	for _, proven := range []string{`{"a": 1}`, `{"a": 2}`} {
		if err := sys.ProveOAuthRequest(t.Context(), hash, []byte(proven)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := sys.OAuthRequest(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	want := store.OAuthRequest{
		Hash: hash, Browser: sumHash("browser"), Form: "form", Query: "a=b", Proven: []byte(`{"a": 1}`), CreatedAt: h.db.Now(), ExpiresAt: h.db.Now().Add(10 * time.Minute),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("OAuthRequest() (-want +got):\n%s", diff)
	}
	if err := sys.AnswerOAuthRequest(t.Context(), hash); err != nil {
		t.Fatal(err)
	}
	if err := sys.AnswerOAuthRequest(t.Context(), hash); reason.Of(err).Word != reason.ConsentNotValid {
		t.Errorf("a second answer = %v, want %s", err, reason.ConsentNotValid)
	}
	if _, err := sys.OAuthRequest(t.Context(), sumHash("unknown")); !store.IsAbsent(err) {
		t.Errorf("OAuthRequest() of none = %v", err)
	}
	late := request(t, h.db)
	h.clock.pass(10 * time.Minute)
	if err := sys.AnswerOAuthRequest(t.Context(), late); reason.Of(err).Word != reason.ConsentNotValid {
		t.Errorf("an answer after ten minutes = %v, want %s", err, reason.ConsentNotValid)
	}
	h.clock.pass(time.Hour + time.Second)
	if err := sys.SweepOAuth(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := sys.OAuthRequest(t.Context(), late); !store.IsAbsent(err) {
		t.Errorf("OAuthRequest() after the sweep = %v", err)
	}
}

// Whatever ends an agent or its people ends what apps were given of it.
func TestGrantsEndWithWhatTheyAreOf(t *testing.T) {
	t.Parallel()
	end := func(t *testing.T, h oauthHouse, fn func(*store.Tx, store.Caller) error, want store.GrantCause) {
		t.Helper()
		_, self := grantTo(t, h.db, h.c, h.agent)
		jti := store.NewID[store.TokenKind](h.db.Now())
		do(t, h.db, h.c, func(tx *store.Tx) error { return fn(tx, self) })
		if _, err := h.db.System().LiveGrant(t.Context(), self.Grant, jti); !store.IsAbsent(err) {
			t.Errorf("LiveGrant() after it ended by %s = %v", want, err)
		}
		list := must(t, h.db, h.c, func(tx *store.Tx) ([]store.Grant, error) { return tx.Grants(t.Context(), h.agent) })
		if len(list) == 0 || list[0].Cause != want {
			t.Errorf("Grants() = %+v, want %s first", list, want)
		}
		live := must(t, h.db, h.c, func(tx *store.Tx) ([]store.Grant, error) { return tx.LiveGrants(t.Context()) })
		if len(live) != 0 {
			t.Errorf("LiveGrants() = %+v, want none", live)
		}
	}
	h := newOAuthHouse(t)
	end(t, h, func(tx *store.Tx, self store.Caller) error {
		_, err := tx.EndGrant(t.Context(), self.Grant)
		return err
	}, store.GrantByPerson)
	h = newOAuthHouse(t)
	end(t, h, func(tx *store.Tx, _ store.Caller) error { return tx.RevokeAgent(t.Context(), h.agent) }, store.GrantByAgent)

	// One that a member consented to, of an agent of somebody else's.
	h = newOAuthHouse(t)
	admin := storetest.Member(t, h.db, h.c, store.RoleAdmin)
	_, self := grantTo(t, h.db, admin, h.agent)
	do(t, h.db, h.c, func(tx *store.Tx) error { return tx.RemoveMember(t.Context(), admin.User) })
	if _, err := h.db.System().LiveGrant(t.Context(), self.Grant, store.NewID[store.TokenKind](h.db.Now())); !store.IsAbsent(err) {
		t.Errorf("LiveGrant() after who consented was removed = %v", err)
	}
}

func TestAnOrganisationsGrantsAreItsOwn(t *testing.T) {
	t.Parallel()
	h := newOAuthHouse(t)
	other := storetest.Organisation(t, h.db)
	member := storetest.Member(t, h.db, h.c, store.RoleMember)
	_, self := grantTo(t, h.db, h.c, h.agent)
	for name, c := range map[string]store.Caller{"another organisation": other, "another member": member} {
		if err := h.db.As(t.Context(), c, func(tx *store.Tx) error { _, err := tx.EndGrant(t.Context(), self.Grant); return err }); !store.IsAbsent(err) {
			t.Errorf("EndGrant() by %s = %v, want %v", name, err, reason.NotFound)
		}
		n := newGrant(request(t, h.db), h.agent)
		err := h.db.As(t.Context(), c, func(tx *store.Tx) error {
			_, _, err := tx.AllowRequest(t.Context(), n)
			return err
		})
		if !store.IsAbsent(err) {
			t.Errorf("AllowRequest() of somebody else's agent by %s = %v, want %v", name, err, reason.NotFound)
		}
		if list := must(t, h.db, c, func(tx *store.Tx) ([]store.Grant, error) { return tx.LiveGrants(t.Context()) }); len(list) != 0 {
			t.Errorf("LiveGrants() of %s = %+v, want none", name, list)
		}
	}
}

// Agent, grant and code are made with the end of the request, or not at all.
func TestAllowingIsOneThing(t *testing.T) {
	t.Parallel()
	h := newOAuthHouse(t)
	r := request(t, h.db)
	refused := newGrant(r, store.AgentID{})
	refused.Name = "!"
	allow := func(n store.NewGrant) (store.AgentID, error) {
		var id store.AgentID
		person := h.c
		person.Via = store.ViaSession
		err := h.db.As(t.Context(), person, func(tx *store.Tx) (err error) {
			id, _, err = tx.AllowRequest(context.WithoutCancel(t.Context()), n)
			return err
		})
		return id, err
	}
	if _, err := allow(refused); reason.Of(err).Word != reason.InputInvalid {
		t.Fatalf("AllowRequest() with a bad name = %v", err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	made, spent := 0, 0
	for range 8 {
		all.Go(func() {
			_, err := allow(newGrant(r, store.AgentID{}))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				made++
			case errors.Is(err, reason.Refuse(reason.ConsentNotValid, "")):
				spent++
			default:
				t.Errorf("AllowRequest() = %v", err)
			}
		})
	}
	all.Wait()
	if made != 1 || spent != 7 {
		t.Errorf("of eight at once %d were allowed and %d refused, want 1 and 7", made, spent)
	}
	// A taken name gets a number, without regard to case.
	for _, want := range []string{"App 2", "App 3"} {
		id, err := allow(newGrant(request(t, h.db), store.AgentID{}))
		if err != nil {
			t.Fatal(err)
		}
		a := must(t, h.db, h.c, func(tx *store.Tx) (store.Agent, error) { return tx.Agent(t.Context(), id) })
		if a.Name != want || a.AdvancedTools {
			t.Errorf("the new agent is %+v, want %q without advanced tools", a, want)
		}
	}
}

// Of many replicas one makes the next signing key, and it takes its turn once everybody has heard of it.
func TestSigningKeysTakeTurns(t *testing.T) {
	t.Parallel()
	k := newClock()
	db := storetest.Open(t, storetest.PrivateURL(t), k.now)
	sys := db.System()
	seal := func(kid store.KeyID) ([]byte, []byte, error) {
		b := kid.Bytes()
		return append(b[:], b[:]...), []byte("sealed"), nil
	}
	first, err := sys.ActiveSigningKey(t.Context(), "token", seal)
	if err != nil {
		t.Fatal(err)
	}
	k.pass(time.Second)
	var all sync.WaitGroup
	var mu sync.Mutex
	kids, made := map[store.KeyID]bool{}, 0
	for range 8 {
		all.Go(func() {
			next, here, err := sys.NextSigningKey(t.Context(), "token", seal)
			mu.Lock()
			defer mu.Unlock()
			kids[next.Kid] = true
			if here {
				made++
			}
			if err != nil || next.State != "next" || next.Kid == first.Kid {
				t.Errorf("NextSigningKey() = %+v, %v", next, err)
			}
		})
	}
	all.Wait()
	if len(kids) != 1 || made != 1 {
		t.Errorf("%d next keys, made %d times, want 1", len(kids), made)
	}
	began := db.Now()
	for _, step := range []struct {
		known, ended time.Time
		turned       bool
		states       []string // newest first
	}{
		{began.Add(-time.Second), began, false, []string{"next", "active"}},
		{began, began.Add(-time.Second), true, []string{"active", "retiring"}},
		{began, began, false, []string{"active", "retired"}},
	} {
		turned, err := sys.TurnSigningKeys(t.Context(), "token", step.known, step.ended)
		if err != nil || turned != step.turned {
			t.Errorf("TurnSigningKeys() = %t, %v, want %t", turned, err, step.turned)
		}
		rows, err := sys.SigningKeys(t.Context(), "token")
		if err != nil {
			t.Fatal(err)
		}
		var states []string
		for _, row := range rows {
			states = append(states, row.State)
		}
		if diff := cmp.Diff(step.states, states); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
	}
}

// What is kept of a grant that has ended goes a day later, and what is kept of one that lives has an end too.
func TestTokensAreNotKeptForEver(t *testing.T) {
	t.Parallel()
	h, self, first := refreshed(t)
	count := func() int64 {
		t.Helper()
		var n int64
		for _, token := range []string{"", "2", "3"} {
			hash := first
			if token != "" {
				hash = store.HashToken(t.Name() + token)
			}
			if _, err := h.db.System().OAuthToken(t.Context(), hash); err == nil {
				n++
			} else if !store.IsAbsent(err) {
				t.Fatal(err)
			}
		}
		return n
	}
	sweep := func() {
		t.Helper()
		if err := h.db.System().SweepOAuth(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	second, third := store.HashToken(t.Name()+"2"), store.HashToken(t.Name()+"3")
	h.rotate(t, self, first, second, "one")
	h.clock.pass(20 * 24 * time.Hour)
	h.rotate(t, self, second, third, "two")
	sweep()
	if n := count(); n != 3 {
		t.Errorf("%d tokens after 20 days, want 3", n)
	}
	h.clock.pass(11 * 24 * time.Hour)
	sweep()
	if n := count(); n != 2 {
		t.Errorf("%d tokens after 31 days, want the last two", n)
	}
	list := must(t, h.db, h.c, func(tx *store.Tx) ([]store.Grant, error) { return tx.Grants(t.Context(), h.agent) })
	if len(list) != 1 || list[0].LastRefreshedAt == nil || h.db.Now().Sub(*list[0].LastRefreshedAt) != 11*24*time.Hour {
		t.Errorf("Grants() = %+v, want one that was refreshed 11 days ago", list)
	}
	do(t, h.db, h.c, func(tx *store.Tx) error { _, err := tx.EndGrant(t.Context(), self.Grant); return err })
	h.clock.pass(25 * time.Hour)
	sweep()
	if n := number(t, connect(t, storetest.Superuser(t, h.dsn)), `SELECT count(*) FROM oauth_token WHERE grant_id = $1`, self.Grant); n != 0 {
		t.Errorf("%d tokens a day after the end, want none", n)
	}
}

// A refresh costs the same however often the grant was refreshed before, also while Postgres has not counted its tokens.
func TestARefreshLooksAtItsOwnTokenAlone(t *testing.T) {
	t.Parallel()
	h, self, first := refreshed(t)
	old := first
	for n := range 300 {
		next := store.HashToken(fmt.Sprint(t.Name(), n))
		h.rotate(t, self, old, next, "answer")
		old = next
	}
	conn := connect(t, storetest.Superuser(t, h.dsn))
	run(t, conn, fmt.Sprintf(`SELECT set_config('graft.org', '%x', false)`, h.c.Org.Bytes()))
	now := h.db.Now()
	for role, statement := range map[string]struct {
		sql  string
		args pgx.NamedArgs
	}{
		"graft_system": {store.LookOAuthToken, pgx.NamedArgs{"hash": old[:]}},
		"graft_app": {store.RotateToken, pgx.NamedArgs{
			"hash": old[:], "next": first[:], "answer": []byte("x"), "now": now, "grant": self.Grant, "client": clientID,
		}},
	} {
		run(t, conn, `SET ROLE `+role)
		rows, err := conn.Query(t.Context(), `EXPLAIN `+statement.sql, statement.args)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(plan, "\n"); strings.Contains(text, "oauth_token_grant_idx") || strings.Contains(text, "Seq Scan on oauth_token") {
			t.Errorf("%s goes through the tokens of the grant:\n%s", role, text)
		}
		run(t, conn, `RESET ROLE`)
	}
}
