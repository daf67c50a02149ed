package store_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"pgregory.net/rapid"

	"github.com/getgraft/graft/internal/store"
)

// moments are the times that a UUIDv7 can hold, to the millisecond.
func moments() *rapid.Generator[time.Time] {
	return rapid.Map(rapid.Int64Range(0, 1<<48-1), func(ms int64) time.Time { return time.UnixMilli(ms).UTC() })
}

func TestIDsSurviveEveryForm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := moments().Draw(t, "time")
		id := store.NewID[store.AgentKind](at)
		if got, err := store.ParseID[store.AgentKind](id.String()); err != nil || got != id {
			t.Fatalf("ParseID(%q) = %v, %v, want itself", id, got, err)
		}
		if got := store.IDFromBytes[store.AgentKind](id.Bytes()); got != id {
			t.Fatalf("IDFromBytes() = %v, want %v", got, id)
		}
		if got := id.Time(); !got.Equal(at) {
			t.Fatalf("Time() = %v, want %v", got, at)
		}
		text, err := json.Marshal(map[store.AgentID]store.AgentID{id: id})
		if err != nil {
			t.Fatal(err)
		}
		var back map[store.AgentID]store.AgentID
		if err := json.Unmarshal(text, &back); err != nil || back[id] != id {
			t.Fatalf("Unmarshal(%s) = %v, %v, want %v", text, back, err, id)
		}
		value, err := id.UUIDValue()
		if err != nil {
			t.Fatal(err)
		}
		var scanned store.AgentID
		if err := scanned.ScanUUID(value); err != nil || scanned != id {
			t.Fatalf("ScanUUID() = %v, %v, want %v", scanned, err, id)
		}
		if b := id.Bytes(); b[6]>>4 != 7 || b[8]>>6 != 2 {
			t.Fatalf("Bytes() = %x, want version 7 and variant 2 (RFC 9562 §5.7)", b)
		}
		if s := id.String(); len(s) != 30 || !strings.HasPrefix(s, "agt_") || strings.ToLower(s) != s {
			t.Fatalf("String() = %q, want agt_ and 26 small characters", s)
		}
	})
}

func TestLaterIDsSortLater(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := moments().Draw(t, "time")
		step := rapid.Int64Range(1, 1<<40).Draw(t, "step")
		later := at.Add(time.Duration(step) * time.Millisecond)
		if later.UnixMilli() >= 1<<48 {
			return
		}
		a, b := store.NewID[store.OrgKind](at), store.NewID[store.OrgKind](later)
		x, y := a.Bytes(), b.Bytes()
		if bytes.Compare(x[:], y[:]) >= 0 || a.String() >= b.String() {
			t.Fatalf("%v of %v does not sort before %v of %v", a, at, b, later)
		}
	})
}

func TestIDsOfOneMomentDiffer(t *testing.T) {
	t.Parallel()
	seen := map[store.KeyID]bool{}
	for range 1000 {
		seen[store.NewID[store.KeyKind](time.UnixMilli(1))] = true
	}
	if len(seen) != 1000 {
		t.Errorf("ids of one moment = %d different ones, want 1000", len(seen))
	}
}

func TestEveryKindHasItsPrefix(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1)
	for prefix, s := range map[string]string{
		"org_": store.NewID[store.OrgKind](now).String(), "usr_": store.NewID[store.UserKind](now).String(),
		"agt_": store.NewID[store.AgentKind](now).String(), "tok_": store.NewID[store.TokenKind](now).String(),
		"grt_": store.NewID[store.GrantKind](now).String(), "ses_": store.NewID[store.SessionKind](now).String(),
		"key_": store.NewID[store.KeyKind](now).String(), "pky_": store.NewID[store.PasskeyKind](now).String(),
		"idn_": store.NewID[store.IdentityKind](now).String(),
	} {
		if !strings.HasPrefix(s, prefix) {
			t.Errorf("id = %q, want prefix %q", s, prefix)
		}
		if prefix != "agt_" {
			if id, err := store.ParseID[store.AgentKind](s); !store.IsAbsent(err) || !id.IsZero() {
				t.Errorf("ParseID(%q) as an agent's = %v, %v, want not found", s, id, err)
			}
		}
	}
}

// TestParseIDTakesOneSpelling: two spellings of an id would be two keys of one cache.
func TestParseIDTakesOneSpelling(t *testing.T) {
	t.Parallel()
	id := store.NewID[store.AgentKind](time.UnixMilli(1772355600000))
	s := id.String()
	for name, other := range map[string]string{
		"empty": "", "prefix alone": "agt_", "upper case": strings.ToUpper(s), "upper case after the prefix": "agt_" + strings.ToUpper(s[4:]),
		"upper-case prefix": "AGT_" + s[4:], "no prefix": s[4:], "short": s[:29], "long": s + "0", "padded": s + "======",
		"padded within": s[:28] + "==", "space before": " " + s, "space after": s + " ", "newline within": s[:10] + "\n" + s[10:],
		"newline in place of a digit": s[:10] + "\n" + s[11:], "newline after": s + "\n", "a letter that stands for a digit": s[:4] + "o" + s[5:],
		"a letter outside the alphabet": s[:5] + "u" + s[6:], "UUID form": "019ca8f2-1a80-7000-8000-000000000000", "zero": "agt_" + strings.Repeat("0", 26),
		"another alphabet": "agt_" + strings.Repeat("é", 13), "NUL": s[:29] + "\x00",
	} {
		if got, err := store.ParseID[store.AgentKind](other); !store.IsAbsent(err) || !got.IsZero() {
			t.Errorf("ParseID() of %s, %q = %v, %v, want not found", name, other, got, err)
		}
	}
	// The last character holds three bits of the id and two that must be clear.
	last := strings.IndexByte("0123456789abcdefghjkmnpqrstvwxyz", s[29])
	for bits := 1; bits < 4; bits++ {
		other := s[:29] + string("0123456789abcdefghjkmnpqrstvwxyz"[last|bits])
		if got, err := store.ParseID[store.AgentKind](other); !store.IsAbsent(err) {
			t.Errorf("ParseID(%q) with trailing bits = %v, %v, want not found", other, got, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		other := rapid.OneOf(rapid.String(), rapid.StringMatching(`agt_[0-9a-zA-Z=]{24,28}`)).Draw(t, "text")
		if got, err := store.ParseID[store.AgentKind](other); err == nil && got.String() != other {
			t.Fatalf("ParseID(%q) = %v, want it refused or the same text back", other, got)
		}
	})
}

func TestTheZeroIDIsNothing(t *testing.T) {
	t.Parallel()
	var id store.AgentID
	if got := id.String(); got != "" || !id.IsZero() {
		t.Errorf("String() of the zero id = %q, IsZero() = %v, want empty and true", got, id.IsZero())
	}
	if v, err := id.UUIDValue(); err != nil || v.Valid {
		t.Errorf("UUIDValue() = %v, %v, want NULL", v, err)
	}
	id = store.NewID[store.AgentKind](time.UnixMilli(1))
	if err := id.ScanUUID(pgtype.UUID{}); err != nil || !id.IsZero() {
		t.Errorf("ScanUUID(NULL) = %v, %v, want zero", id, err)
	}
	id = store.NewID[store.AgentKind](time.UnixMilli(1))
	if err := id.UnmarshalText(nil); err != nil || !id.IsZero() {
		t.Errorf("UnmarshalText(nothing) = %v, %v, want zero", id, err)
	}
	id = store.NewID[store.AgentKind](time.UnixMilli(1))
	kept := id
	if err := id.UnmarshalText([]byte("agt_x")); !store.IsAbsent(err) || id != kept {
		t.Errorf("UnmarshalText(garbage) = %v, %v, want not found and the id as it was", id, err)
	}
}

func FuzzParseID(f *testing.F) {
	id := store.NewID[store.AgentKind](time.UnixMilli(1772355600000)).String()
	for _, s := range []string{"", "agt_", id, strings.ToUpper(id), id[:29] + "\n", id + "=", "agt_" + strings.Repeat("0", 26)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := store.ParseID[store.AgentKind](s)
		if (err == nil) == got.IsZero() {
			t.Errorf("ParseID(%q) = %v, %v, want an id or an error", s, got, err)
		}
		if err == nil && got.String() != s {
			t.Errorf("ParseID(%q).String() = %q, want the same", s, got)
		}
	})
}
