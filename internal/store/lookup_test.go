package store_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/migrations"
)

// private is a database of the test's own, with a clock of its own.
func private(t *testing.T) (*store.DB, *clock) {
	t.Helper()
	clock := newClock()
	return storetest.Open(t, storetest.PrivateURL(t), clock.now), clock
}

func enrol(t *testing.T, db *store.DB, org, email string, role store.Role) (store.Organisation, store.UserID) {
	t.Helper()
	o, user, err := db.System().Enrol(t.Context(), org, email, role)
	if err != nil {
		t.Fatal(err)
	}
	return o.Organisation, user
}

func memberships(t *testing.T, db *store.DB, user store.UserID) []store.Membership {
	t.Helper()
	list, err := db.System().Memberships(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestEnrolMakesWhatIsMissing(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	acme, ana := enrol(t, db, "Acme", " Ana@Example.com ", store.RoleMember)
	if want := (store.Organisation{ID: acme.ID, Name: "Acme", CreatedAt: clock.now()}); !acme.CreatedAt.Equal(want.CreatedAt) || acme.Name != want.Name {
		t.Errorf("Enrol() = %v, want %v", acme, want)
	}
	_, bo := enrol(t, db, "ACME", "bo@example.com", store.RoleAuditor)
	zeta, again := enrol(t, db, "Zeta", "ana@example.com", store.RoleMember)
	_, _ = enrol(t, db, "Beta", "ana@example.com", store.RoleMember)
	if again != ana {
		t.Errorf("Enrol() of a known address = %v, want %v", again, ana)
	}
	if o, user := enrol(t, db, "acme", "ANA@example.com", store.RoleOwner); o.ID != acme.ID || o.Name != "Acme" || user != ana {
		t.Errorf("Enrol() again = %v, %v, want %v, %v", o, user, acme, ana)
	}
	var got []string
	for _, m := range memberships(t, db, ana) {
		got = append(got, fmt.Sprintf("%s as %s, %s", m.OrgName, m.Role, m.Email))
	}
	want := []string{"Acme as owner, ana@example.com", "Beta as owner, ana@example.com", "Zeta as owner, ana@example.com"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Memberships() (-want +got):\n%s", diff)
	}
	if list := memberships(t, db, bo); len(list) != 1 || list[0].Role != store.RoleAuditor || list[0].Org != acme.ID {
		t.Errorf("Memberships() = %v, want one as auditor of %v", list, acme.ID)
	}
	if list := memberships(t, db, store.NewID[store.UserKind](db.Now())); len(list) != 0 {
		t.Errorf("Memberships() of nobody = %v, want none", list)
	}

	super := connect(t, storetest.Superuser(t, dsnOf(db)))
	if _, err := super.Exec(t.Context(), `UPDATE member SET removed_at = now() WHERE org_id = $1 AND user_id = $2`, zeta.ID, ana); err != nil {
		t.Fatal(err)
	}
	if list := memberships(t, db, ana); len(list) != 2 {
		t.Errorf("Memberships() after one ended = %v, want 2", list)
	}
}

// dsnOf is the address that db was opened with.
func dsnOf(db *store.DB) string { return db.Pool().Config().ConnString() }

func TestEnrolRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	for _, tt := range []struct {
		org, email string
		role       store.Role
		field      string
	}{
		{"", "ana@example.com", store.RoleMember, "org"},
		{"Acme\n", "ana@example.com", store.RoleMember, "org"},
		{"Acme", "ana", store.RoleMember, "email"},
		{"Acme", "ana@example.com", "king", "role"},
	} {
		_, _, err := db.System().Enrol(t.Context(), tt.org, tt.email, tt.role)
		if outcome(err) != "input_invalid" || reason.Of(err).Details["field"] != tt.field {
			t.Errorf("Enrol(%q, %q, %q) = %v, want input_invalid of %s", tt.org, tt.email, tt.role, err, tt.field)
		}
	}
	if found, err := db.System().AnyUser(t.Context()); err != nil || found {
		t.Errorf("AnyUser() = %v, %v, want none made", found, err)
	}
}

// TestEnrolChangesNoRole: what a membership is stays, and whoever asks for another is told.
func TestEnrolChangesNoRole(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	system := db.System()
	for _, tt := range []struct {
		email string
		role  store.Role
		want  store.Enrolment
		fails string
	}{
		{"ana@example.com", store.RoleMember, store.Enrolment{Founded: true, Role: store.RoleOwner}, ""},
		{"ana@example.com", "", store.Enrolment{Role: store.RoleOwner}, ""},
		{"ana@example.com", store.RoleOwner, store.Enrolment{Role: store.RoleOwner}, ""},
		{"ana@example.com", store.RoleMember, store.Enrolment{}, "ana@example.com is a member already, as owner. To change that, run graft user role."},
		{"bo@example.com", "", store.Enrolment{Role: store.RoleMember}, ""},
		{"Bo@example.com", store.RoleAuditor, store.Enrolment{}, "bo@example.com is a member already, as member. To change that, run graft user role."},
		{"cy@example.com", store.RoleAuditor, store.Enrolment{Role: store.RoleAuditor}, ""},
	} {
		got, user, err := system.Enrol(t.Context(), "Acme", tt.email, tt.role)
		if tt.fails != "" {
			if outcome(err) != "name_taken" || reason.Of(err).Message != tt.fails {
				t.Errorf("Enrol(%s, %q) = %v, want %q", tt.email, tt.role, err, tt.fails)
			}
			continue
		}
		if err != nil || got.Founded != tt.want.Founded || got.Role != tt.want.Role {
			t.Errorf("Enrol(%s, %q) = %+v, %v, want %+v", tt.email, tt.role, got, err, tt.want)
		}
		if list := memberships(t, db, user); len(list) != 1 || list[0].Role != tt.want.Role {
			t.Errorf("Memberships(%s) = %v, want one as %s", tt.email, list, tt.want.Role)
		}
	}
	run(t, connect(t, storetest.Superuser(t, dsnOf(db))), `UPDATE member SET removed_at = now() WHERE role = 'auditor'`)
	_, _, err := system.Enrol(t.Context(), "Acme", "cy@example.com", "")
	if want := "cy@example.com was removed from Acme. An invite of the Members page brings them back."; outcome(err) != "forbidden" || reason.Of(err).Message != want {
		t.Errorf("Enrol() of somebody who was removed = %v, want %q", err, want)
	}
}

func TestOneOfManyFirstMembersIsTheOwner(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	other := storetest.Open(t, dsnOf(db), nil)
	var all sync.WaitGroup
	var orgs [8]store.OrgID
	var users [8]store.UserID
	for n := range orgs {
		all.Go(func() {
			o, user, err := []*store.DB{db, other}[n%2].System().Enrol(t.Context(), "Acme", fmt.Sprintf("user-%d@example.com", n), store.RoleMember)
			if err != nil {
				t.Errorf("Enrol() = %v, want nil", err)
			}
			orgs[n], users[n] = o.ID, user
		})
	}
	all.Wait()
	owners := 0
	for n, user := range users {
		if orgs[n] != orgs[0] {
			t.Errorf("organisation %d = %v, want %v", n, orgs[n], orgs[0])
		}
		list := memberships(t, db, user)
		if len(list) == 1 && list[0].Role == store.RoleOwner {
			owners++
		}
	}
	conn := connect(t, storetest.Superuser(t, dsnOf(db)))
	if n := number(t, conn, `SELECT count(*) FROM organisation`); owners != 1 || n != 1 {
		t.Errorf("owners = %d, organisations = %d, want 1 and 1", owners, n)
	}
}

func TestOneAddressInManyOrganisationsAtOnceIsOneAccount(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	var all sync.WaitGroup
	var users [6]store.UserID
	for n := range users {
		all.Go(func() {
			var err error
			if _, users[n], err = db.System().Enrol(t.Context(), fmt.Sprintf("Org %d", n), "ana@example.com", store.RoleMember); err != nil {
				t.Errorf("Enrol() = %v, want nil", err)
			}
		})
	}
	all.Wait()
	for n, user := range users {
		if user != users[0] {
			t.Errorf("account %d = %v, want %v", n, user, users[0])
		}
	}
	if list := memberships(t, db, users[0]); len(list) != len(users) {
		t.Errorf("Memberships() = %d, want %d", len(list), len(users))
	}
}

func TestUserByEmail(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	email := must(t, db, c, func(tx *store.Tx) ([]store.Member, error) { return tx.Members(t.Context()) })[0].Email
	for _, change := range [][2]string{{"", "$argon2id$x"}, {"", "$argon2id$late"}} { // the second finds another password
		if err := db.System().SetPassword(t.Context(), c.User, change[0], change[1]); err != nil {
			t.Fatal(err)
		}
	}
	got, err := db.System().UserByEmail(t.Context(), " "+email)
	if want := (store.User{ID: c.User, Email: email, Password: "$argon2id$x"}); err != nil || got != want {
		t.Errorf("UserByEmail() = %v, %v, want %v", got, err, want)
	}
	for _, s := range []string{"nobody@example.com", "", "%", "a\x00@example.com", "\xff"} {
		if got, err := db.System().UserByEmail(t.Context(), s); !store.IsAbsent(err) {
			t.Errorf("UserByEmail(%q) = %v, %v, want %v", s, got, err, reason.NotFound)
		}
	}
}

func TestChangeWebSessionBringsNoneBack(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	sys, hash, later := db.System(), store.HashToken(c.User.String()), db.Now().Add(time.Hour)
	if err := sys.ChangeWebSession(t.Context(), hash, []byte("new"), later); !store.IsAbsent(err) {
		t.Errorf("ChangeWebSession() of none = %v, want %v", err, reason.NotFound)
	}
	if err := sys.BeginWebSession(t.Context(), hash, c.User, "", []byte("first"), later); err != nil {
		t.Fatal(err)
	}
	if err := sys.ChangeWebSession(t.Context(), hash, []byte("second"), later); err != nil {
		t.Fatal(err)
	}
	if data, err := sys.WebSession(t.Context(), hash); err != nil || string(data) != "second" {
		t.Errorf("WebSession() = %q, %v, want second", data, err)
	}
	if err := sys.DeleteWebSession(t.Context(), hash); err != nil {
		t.Fatal(err)
	}
	if err := sys.ChangeWebSession(t.Context(), hash, []byte("third"), later); !store.IsAbsent(err) {
		t.Errorf("ChangeWebSession() of an ended one = %v, want %v", err, reason.NotFound)
	}
	if _, err := sys.WebSession(t.Context(), hash); !store.IsAbsent(err) {
		t.Errorf("the ended session is back: %v", err)
	}
}

func TestUseLinkEndsTheUsersOtherLinks(t *testing.T) {
	t.Parallel()
	db, c := storetest.New(t)
	sys := db.System()
	var tokens []string
	for range 2 {
		token, err := sys.NewSignInLink(t.Context(), c.User, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	if _, err := sys.UseLink(t.Context(), tokens[1], store.Setup{Password: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := sys.Link(t.Context(), tokens[0]); outcome(err) != "link_not_valid" {
		t.Errorf("Link() of the other = %v, want link_not_valid", err)
	}
}

func TestOrganisationByName(t *testing.T) {
	t.Parallel()
	db, _ := private(t)
	find := func(name string) (store.OrgID, string) {
		o, err := db.System().OrganisationByName(t.Context(), name)
		return o.ID, outcome(err)
	}
	if _, got := find(""); got != "not_found" {
		t.Errorf("OrganisationByName() of none = %s, want not_found", got)
	}
	acme, _ := enrol(t, db, "Acme", "ana@example.com", store.RoleOwner)
	for _, name := range []string{"", "Acme", "aCME"} {
		if id, got := find(name); id != acme.ID || got != "yes" {
			t.Errorf("OrganisationByName(%q) = %v, %s, want %v", name, id, got, acme.ID)
		}
	}
	beta, _ := enrol(t, db, "Beta", "ana@example.com", store.RoleOwner)
	if id, got := find("beta"); id != beta.ID || got != "yes" {
		t.Errorf(`OrganisationByName("beta") = %v, %s, want %v`, id, got, beta.ID)
	}
	_, err := db.System().OrganisationByName(t.Context(), "")
	if want := "There are several organisations: Acme, Beta. Say which with --org."; outcome(err) != "input_invalid" || reason.Of(err).Message != want {
		t.Errorf("OrganisationByName() of two = %v, want %q", err, want)
	}
	for n := range 9 {
		_, _ = enrol(t, db, fmt.Sprintf("Org %d", n), "ana@example.com", store.RoleOwner)
	}
	_, err = db.System().OrganisationByName(t.Context(), "")
	if want := "Acme, Beta, Org 0, Org 1, Org 2, Org 3, Org 4, Org 5, Org 6, Org 7 and more."; !strings.Contains(reason.Of(err).Message, want) {
		t.Errorf("OrganisationByName() of eleven = %v, want the first ten named: %s", err, want)
	}
	for _, name := range []string{"Gamma", "Acme%", "a\x00", "\xff"} {
		if _, got := find(name); got != "not_found" {
			t.Errorf("OrganisationByName(%q) = %s, want not_found", name, got)
		}
	}
}

func TestWebSessions(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	sys := db.System()
	_, user := enrol(t, db, "Acme", "ana@example.com", store.RoleOwner)
	hash := store.HashToken("cookie")
	save := func(data string, lives time.Duration) {
		t.Helper()
		if err := sys.BeginWebSession(t.Context(), hash, user, "", []byte(data), clock.now().Add(lives)); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (string, string) {
		data, err := sys.WebSession(t.Context(), hash)
		return string(data), outcome(err)
	}
	if data, got := read(); got != "not_found" {
		t.Errorf("WebSession() of none = %q, %s, want not_found", data, got)
	}
	save("signed in before", time.Hour)
	save("signed in", 2*time.Hour)
	clock.pass(2*time.Hour - time.Microsecond)
	if data, got := read(); data != "signed in" || got != "yes" {
		t.Errorf("WebSession() = %q, %s, want what was saved last", data, got)
	}
	clock.pass(time.Microsecond)
	if data, got := read(); got != "not_found" {
		t.Errorf("WebSession() past its time = %q, %s, want not_found", data, got)
	}
	save("again", time.Hour)
	for range 2 { // ending one twice is no error
		if err := sys.DeleteWebSession(t.Context(), hash); err != nil {
			t.Errorf("DeleteWebSession() = %v, want nil", err)
		}
	}
	if data, got := read(); got != "not_found" {
		t.Errorf("WebSession() after its end = %q, %s, want not_found", data, got)
	}
	if err := sys.BeginWebSession(t.Context(), hash, store.NewID[store.UserKind](db.Now()), "", nil, clock.now()); err == nil {
		t.Error("BeginWebSession() for nobody = nil, want an error")
	}
}

func TestSweepDeletesWhatRanOut(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	sys := db.System()
	if _, err := sys.NewWelcomeLink(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, user := enrol(t, db, "Acme", "ana@example.com", store.RoleOwner)
	for _, lives := range []time.Duration{time.Hour, 3 * time.Hour} {
		if _, err := sys.NewSignInLink(t.Context(), user, lives); err != nil {
			t.Fatal(err)
		}
		if err := sys.BeginWebSession(t.Context(), store.HashToken(lives.String()), user, "", []byte{}, clock.now().Add(lives)); err != nil {
			t.Fatal(err)
		}
	}
	super := connect(t, storetest.Superuser(t, dsnOf(db)))
	for _, want := range []struct {
		after           time.Duration
		links, sessions int64
	}{{0, 3, 2}, {time.Hour, 2, 1}, {2 * time.Hour, 1, 0}, {store.WelcomeLife, 0, 0}} {
		clock.pass(want.after)
		if err := sys.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		links, sessions := number(t, super, `SELECT count(*) FROM signin_link`), number(t, super, `SELECT count(*) FROM web_session`)
		if links != want.links || sessions != want.sessions {
			t.Errorf("after %v more: %d links and %d sessions, want %d and %d", want.after, links, sessions, want.links, want.sessions)
		}
	}
}

func TestASweepThatFailsSomewhereGoesOn(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	owner := storetest.Organisation(t, db)
	agent, _ := storetest.Agent(t, db, owner, "Sweeper")
	do(t, db, bearer(owner, agent), func(tx *store.Tx) error {
		return tx.KeepRun(t.Context(), store.Run{ID: store.NewID[store.RunKind](clock.now()), AgentID: agent.ID, Tool: "mail__send", Status: store.RunSucceeded, StartedAt: clock.now()})
	})
	clock.pass(store.RunLife)
	if err := db.System().BeginWebSession(t.Context(), store.HashToken("session"), owner.User, "", []byte{}, clock.now()); err != nil {
		t.Fatal(err)
	}
	super := connect(t, storetest.Superuser(t, dsnOf(db)))
	run(t, super,
		`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$`,
		`CREATE TRIGGER refuse BEFORE DELETE ON signin_link FOR EACH STATEMENT EXECUTE FUNCTION refuse()`,
		`CREATE TRIGGER refuse BEFORE DELETE ON run FOR EACH STATEMENT EXECUTE FUNCTION refuse()`)
	if err := db.System().Sweep(t.Context()); err == nil || !strings.Contains(err.Error(), "sweep runs") {
		t.Errorf("Sweep() = %v, want it to say that runs were not swept", err)
	}
	if n := number(t, super, `SELECT count(*) FROM web_session`); n != 0 {
		t.Errorf("%d sessions that ran out are left, want none", n)
	}
	run(t, super, `DROP TRIGGER refuse ON run`, `DROP TRIGGER refuse ON signin_link`)
	if err := db.System().Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if n := number(t, super, `SELECT count(*) FROM run`); n != 0 {
		t.Errorf("%d runs that ran out are left, want none", n)
	}
}

func TestASweepTakesManyBites(t *testing.T) {
	t.Parallel()
	db, clock := private(t)
	super := connect(t, storetest.Superuser(t, dsnOf(db)))
	if _, err := super.Exec(t.Context(), `
		INSERT INTO web_session (hash, data, expires_at)
		SELECT sha256(int4send(n)), '', $1::timestamptz - n * interval '1 second' FROM generate_series(-2, 1000) AS n`, clock.now()); err != nil {
		t.Fatal(err)
	}
	if err := db.System().Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := number(t, super, `SELECT count(*) FROM web_session`); n != 2 {
		t.Errorf("%d sessions are left, want the 2 that go on", n)
	}
}

func TestSchemaVersionForAStranger(t *testing.T) {
	t.Parallel()
	dsn := storetest.PrivateURL(t)
	run(t, connect(t, storetest.Superuser(t, dsn)), `DROP ROLE IF EXISTS graft_test_outsider`, `CREATE ROLE graft_test_outsider LOGIN`)
	_, err := storetest.Open(t, as(t, dsn, "graft_test_outsider"), nil).System().SchemaVersion(t.Context())
	if want := "the login is not a member of graft_system: run graft migrate"; err == nil || err.Error() != want {
		t.Errorf("SchemaVersion() for a login without our roles = %v, want %q", err, want)
	}
}

func TestSchemaVersion(t *testing.T) {
	t.Parallel()
	older := storetest.PrivateURL(t)
	storetest.Rewind(t, older)
	for name, tt := range map[string]struct {
		dsn  string
		want int64
	}{
		"migrated": {storetest.URL(t), migrations.Latest()},
		"older":    {older, migrations.Latest() - 1},
		"empty":    {storetest.EmptyURL(t), 0},
	} {
		db := storetest.Open(t, tt.dsn, nil)
		if got, err := db.System().SchemaVersion(t.Context()); err != nil || got != tt.want {
			t.Errorf("SchemaVersion() of a database that is %s = %d, %v, want %d", name, got, err, tt.want)
		}
	}
}

func TestStoredTimesComeFromTheClock(t *testing.T) {
	t.Parallel()
	odd := time.Date(2031, 5, 4, 3, 2, 1, 123456789, time.FixedZone("", 3600))
	db := storetest.Open(t, storetest.PrivateURL(t), func() time.Time { return odd })
	want := odd.UTC().Truncate(time.Microsecond)
	if got := db.Now(); got != want {
		t.Errorf("Now() = %v, want %v", got, want)
	}
	o, _ := enrol(t, db, "Acme", "ana@example.com", store.RoleOwner)
	if !o.CreatedAt.Equal(want) {
		t.Errorf("created at = %v, want %v", o.CreatedAt, want)
	}
}
