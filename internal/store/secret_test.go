package store_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// sealedAs seals nothing: it spells the row out, so that a test sees what a value was sealed for.
func sealedAs(text string) func(store.SecretID) ([]byte, error) {
	return func(id store.SecretID) ([]byte, error) { return []byte(id.String() + " " + text), nil }
}

func TestSecretsAreSetReplacedAndDestroyed(t *testing.T) {
	t.Parallel()
	clock := newClock()
	db := storetest.Open(t, storetest.URL(t), clock.now)
	c := storetest.Organisation(t, db)
	set := func(c store.Caller, name, value string) (bool, error) {
		return in(t, db, c, func(tx *store.Tx) (bool, error) { return tx.SetSecret(t.Context(), name, sealedAs(value)) })
	}
	list := func(c store.Caller) []store.Secret {
		return must(t, db, c, func(tx *store.Tx) ([]store.Secret, error) { return tx.Secrets(t.Context()) })
	}
	if made, err := set(c, "GITHUB_TOKEN", "one"); err != nil || !made {
		t.Fatalf("SetSecret() = %v, %v, want a new one", made, err)
	}
	first := list(c)
	clock.pass(1e9)
	cli := store.Caller{Org: c.Org, Role: store.RoleOwner, Via: store.ViaCLI}
	if made, err := set(cli, "GITHUB_TOKEN", "two"); err != nil || made {
		t.Errorf("SetSecret() again = %v, %v, want the one that is there", made, err)
	}
	upstream(t, db, c, "github", store.UpstreamHeader{Name: "Authorization", Secrets: []string{"GITHUB_TOKEN"}, Seal: header("Bearer ${GITHUB_TOKEN}")})
	again := list(c)
	if len(again) != 1 || again[0].ID != first[0].ID || again[0].SetBy != "" || first[0].SetBy == "" || !again[0].SetAt.Equal(db.Now()) {
		t.Errorf("Secrets() = %+v after %+v, want the same row, set by the CLI now", again, first)
	}
	if diff := cmp.Diff([]string{"github"}, again[0].UsedBy); diff != "" {
		t.Errorf("used by (-want +got):\n%s", diff)
	}
	view := must(t, db, c, func(tx *store.Tx) (store.UpstreamView, error) { return tx.UpstreamView(t.Context()) })
	if len(view.Secrets) != 1 || !bytes.Equal(view.Secrets[0].Value, []byte(first[0].ID.String()+" two")) {
		t.Errorf("secrets of the view = %+v, want the second value, sealed for its row", view.Secrets)
	}

	for _, name := range []string{"", "github_token", "1A", "A-B", "A B", "Ä", string(bytes.Repeat([]byte("A"), 65))} {
		if _, err := set(c, name, "x"); outcome(err) != "input_invalid" {
			t.Errorf("SetSecret(%q) = %v, want input_invalid", name, err)
		}
	}
	boom := errors.New("no key")
	if _, err := in(t, db, c, func(tx *store.Tx) (bool, error) {
		return tx.SetSecret(t.Context(), "OTHER", func(store.SecretID) ([]byte, error) { return nil, boom })
	}); !errors.Is(err, boom) {
		t.Errorf("SetSecret() that cannot be sealed = %v, want %v", err, boom)
	}
	stranger := storetest.Organisation(t, db)
	remove := func(c store.Caller) error {
		return db.As(t.Context(), c, func(tx *store.Tx) error { return tx.RemoveSecret(t.Context(), "GITHUB_TOKEN") })
	}
	if err := remove(stranger); outcome(err) != "not_found" || len(list(stranger)) != 0 {
		t.Errorf("RemoveSecret() of another organisation = %v, want not_found", err)
	}
	for _, role := range []store.Role{store.RoleMember, store.RoleAuditor} {
		m := storetest.Member(t, db, c, role)
		if err := remove(m); outcome(err) != "forbidden" {
			t.Errorf("RemoveSecret() by %s = %v, want forbidden", role, err)
		}
		if _, err := set(m, "X", "x"); outcome(err) != "forbidden" {
			t.Errorf("SetSecret() by %s = %v, want forbidden", role, err)
		}
	}
	if err := remove(c); err != nil {
		t.Fatal(err)
	}
	if err := remove(c); outcome(err) != "not_found" || len(list(c)) != 0 {
		t.Errorf("RemoveSecret() again = %v, want not_found", err)
	}
	u := must(t, db, c, func(tx *store.Tx) (store.Upstream, error) { return tx.UpstreamByName(t.Context(), "github") })
	if diff := cmp.Diff([]string{"GITHUB_TOKEN"}, u.Unset); diff != "" {
		t.Errorf("secrets that are not set (-want +got):\n%s", diff)
	}
}
