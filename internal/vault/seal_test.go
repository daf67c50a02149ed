package vault_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/getgraft/graft/internal/vault"
)

var (
	organisation = vault.Owner{Purpose: "organisation", ID: "org_1"}
	somewhere    = vault.Place{Org: "org_1", Table: "connection", Row: "con_1", Column: "credential"}
)

func newMasterKeys(t rapid.TB) *vault.MasterKeys {
	t.Helper()
	m, err := vault.ParseMasterKeys(vault.GenerateMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newDataKey(t rapid.TB) *vault.DataKey {
	t.Helper()
	key, _, err := newMasterKeys(t).NewDataKey(organisation)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// part draws a component of a place; short strings over few letters make ambiguous neighbours likely.
func part() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`[ab]{1,3}`), rapid.StringN(1, 20, -1))
}

func place() *rapid.Generator[vault.Place] {
	return rapid.Custom(func(t *rapid.T) vault.Place {
		return vault.Place{
			Org: part().Draw(t, "org"), Table: part().Draw(t, "table"),
			Row: part().Draw(t, "row"), Column: part().Draw(t, "column"),
		}
	})
}

func TestSealedSecretOpensInItsPlace(t *testing.T) {
	t.Parallel()
	key := newDataKey(t)
	rapid.Check(t, func(t *rapid.T) {
		at, plain := place().Draw(t, "place"), rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		sealed, err := key.Seal(at, vault.NewSecret(plain))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(sealed), len(plain)+vault.Overhead; got != want {
			t.Fatalf("sealed is %d bytes, want %d", got, want)
		}
		if len(plain) >= 8 && bytes.Contains(sealed, plain) {
			t.Fatal("the plain text stands in the sealed")
		}
		given := bytes.Clone(sealed)
		s, err := key.Open(at, given)
		if err != nil {
			t.Fatal(err)
		}
		clear(given) // a row's buffer is reused after the row is read
		if got := reveal(t, s); !bytes.Equal(got, plain) {
			t.Fatalf("opened %x, want %x", got, plain)
		}
		if s.IsZero() != (len(plain) == 0) || !s.Equal(vault.NewSecret(plain)) {
			t.Fatal("the opened secret is not equal to what was sealed")
		}
	})
}

func TestSealingTwiceDiffers(t *testing.T) {
	t.Parallel()
	key, s := newDataKey(t), vault.NewSecret([]byte(canary))
	a, errA := key.Seal(somewhere, s)
	b, errB := key.Seal(somewhere, s)
	if errA != nil || errB != nil || bytes.Equal(a, b) {
		t.Errorf("Seal twice = %x, %v and %x, %v, want two different ones", a, errA, b, errB)
	}
}

func TestSealedSecretOpensInNoOtherPlace(t *testing.T) {
	t.Parallel()
	key := newDataKey(t)
	rapid.Check(t, func(t *rapid.T) {
		at, other := place().Draw(t, "place"), place().Draw(t, "other")
		if at != other {
			assertOpensOnlyAt(t, key, at, other)
		}
	})
	// The same letters, cut elsewhere; and a length that could be read as a letter.
	for _, pair := range [][2]vault.Place{
		{{Org: "o", Table: "ab", Row: "c", Column: "d"}, {Org: "o", Table: "a", Row: "bc", Column: "d"}},
		{{Org: "oa", Table: "b", Row: "c", Column: "d"}, {Org: "o", Table: "ab", Row: "c", Column: "d"}},
		{{Org: "o", Table: "a", Row: "bc", Column: "d"}, {Org: "o", Table: "a", Row: "b", Column: "cd"}},
		{{Org: "o\x01a", Table: "b", Row: "c", Column: "d"}, {Org: "o", Table: "a\x01b", Row: "c", Column: "d"}},
		{{Org: "o", Table: "a|b", Row: "c", Column: "d"}, {Org: "o", Table: "a", Row: "b|c", Column: "d"}},
		{{Org: "o", Table: "t", Row: "c", Column: "d"}, {Org: "o", Table: "t", Row: "d", Column: "c"}},
		{{Org: "o", Table: "t", Row: "r", Column: "c"}, {Org: "O", Table: "t", Row: "r", Column: "c"}},
	} {
		assertOpensOnlyAt(t, key, pair[0], pair[1])
	}
}

func TestSealedSecretDoesNotSurviveAChangeOfOnePart(t *testing.T) {
	t.Parallel()
	key := newDataKey(t)
	rapid.Check(t, func(t *rapid.T) {
		at, now := place().Draw(t, "place"), part().Draw(t, "part")
		for _, other := range []vault.Place{
			{Org: now, Table: at.Table, Row: at.Row, Column: at.Column},
			{Org: at.Org, Table: now, Row: at.Row, Column: at.Column},
			{Org: at.Org, Table: at.Table, Row: now, Column: at.Column},
			{Org: at.Org, Table: at.Table, Row: at.Row, Column: now},
		} {
			if other != at {
				assertOpensOnlyAt(t, key, at, other)
			}
		}
	})
}

func assertOpensOnlyAt(t rapid.TB, key *vault.DataKey, at, other vault.Place) {
	t.Helper()
	sealed, err := key.Seal(at, vault.NewSecret([]byte(canary)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := key.Open(at, sealed); err != nil {
		t.Fatalf("Open at %q = %v", at, err)
	}
	if s, err := key.Open(other, sealed); !errors.Is(err, vault.ErrTampered) {
		t.Fatalf("sealed at %q, Open at %q = %v, %v, want ErrTampered", at, other, s, err)
	}
}

func TestPlaceWithoutAPartIsRefused(t *testing.T) {
	t.Parallel()
	key := newDataKey(t)
	sealed, err := key.Seal(somewhere, vault.NewSecret([]byte(canary)))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []vault.Place{
		{},
		{Table: "t", Row: "r", Column: "c"},
		{Org: "o", Row: "r", Column: "c"},
		{Org: "o", Table: "t", Column: "c"},
		{Org: "o", Table: "t", Row: "r"},
	} {
		if got, err := key.Seal(at, vault.NewSecret([]byte(canary))); err == nil {
			t.Errorf("Seal at %+v = %x, want an error", at, got)
		}
		if got, err := key.Open(at, sealed); err == nil {
			t.Errorf("Open at %+v = %v, want an error", at, got)
		}
	}
}

func TestAnyFlippedBitIsNoticed(t *testing.T) {
	t.Parallel()
	key := newDataKey(t)
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "plain")
		sealed, err := key.Seal(somewhere, vault.NewSecret(plain))
		if err != nil {
			t.Fatal(err)
		}
		bit := rapid.IntRange(0, len(sealed)*8-1).Draw(t, "bit")
		sealed[bit/8] ^= 1 << (bit % 8)
		if got, err := key.Open(somewhere, sealed); !errors.Is(err, vault.ErrSealed) {
			t.Fatalf("Open with bit %d flipped = %v, %v, want ErrSealed", bit, got, err)
		}
	})
}

func TestNotOpeningSaysWhy(t *testing.T) {
	t.Parallel()
	key := newDataKey(t)
	sealed, err := key.Seal(somewhere, vault.NewSecret([]byte(canary)))
	if err != nil {
		t.Fatal(err)
	}
	change := func(at int, to byte) []byte {
		c := bytes.Clone(sealed)
		c[at] ^= to
		return c
	}
	elsewhere := somewhere
	elsewhere.Row = "con_2"
	reasons := map[string]error{
		"truncated": vault.ErrTruncated, "version": vault.ErrVersion, "key": vault.ErrUnknownKey, "tampered": vault.ErrTampered,
	}
	for _, c := range []struct {
		name   string
		key    *vault.DataKey
		place  vault.Place
		sealed []byte
		want   string
	}{
		{"nothing", key, somewhere, nil, "truncated"},
		{"version alone", key, somewhere, sealed[:1], "truncated"},
		{"one byte less than the shortest", key, somewhere, sealed[:vault.Overhead-1], "truncated"},
		{"version 0", key, somewhere, change(0, 1), "version"},
		{"another version, too short", key, somewhere, []byte{9}, "version"},
		{"another key's id", key, somewhere, change(1, 1), "key"},
		{"another key", newDataKey(t), somewhere, sealed, "key"},
		{"nonce", key, somewhere, change(5, 1), "tampered"},
		{"ciphertext", key, somewhere, change(17, 1), "tampered"},
		{"tag", key, somewhere, change(len(sealed)-1, 128), "tampered"},
		{"tail cut", key, somewhere, sealed[:len(sealed)-1], "tampered"},
		{"tail added", key, somewhere, append(bytes.Clone(sealed), 0), "tampered"},
		{"another place", key, elsewhere, sealed, "tampered"},
		{"plain text", key, somewhere, []byte("\x01" + canary + canary + canary), "key"},
	} {
		_, err := c.key.Open(c.place, c.sealed)
		for name, r := range reasons {
			if got, want := errors.Is(err, r), name == c.want; got != want {
				t.Errorf("%s: errors.Is(%v, %v) = %v, want %v", c.name, err, r, got, want)
			}
		}
		if !errors.Is(err, vault.ErrSealed) {
			t.Errorf("%s: %v is not ErrSealed", c.name, err)
		}
		assertNoCanary(t, c.name, fmt.Sprintf("%v %+v %#v", err, err, err))
	}
}

func FuzzOpen(f *testing.F) {
	m := newMasterKeys(f)
	key, wrapped, err := m.NewDataKey(organisation)
	if err != nil {
		f.Fatal(err)
	}
	secret := vault.NewSecret([]byte(canary))
	sealed, err := key.Seal(somewhere, secret)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{nil, {1}, sealed, wrapped, sealed[:20], bytes.Repeat([]byte{1}, 64)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		switch s, err := key.Open(somewhere, data); {
		case err == nil && (!bytes.Equal(data, sealed) || !s.Equal(secret)):
			t.Errorf("Open(%x) = %v, want only what was sealed to open", data, s)
		case err != nil && !errors.Is(err, vault.ErrSealed):
			t.Errorf("Open(%x) = %v, want an ErrSealed", data, err)
		}
		if _, err := m.Unwrap(organisation, data); (err == nil) != bytes.Equal(data, wrapped) {
			t.Errorf("Unwrap(%x) = %v, want only what was wrapped to unwrap", data, err)
		}
	})
}
