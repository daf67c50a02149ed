package vault_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/getgraft/graft/internal/vault"
)

func TestMasterKeysAreReadInEverySpelling(t *testing.T) {
	t.Parallel()
	raw := bytes.Repeat([]byte{0xfb, 0xef, 0xbe, 0xff}, 8) // both alphabets differ on these
	newest := vault.GenerateMasterKey()
	want := ""
	for name, enc := range map[string]*base64.Encoding{
		"standard": base64.StdEncoding, "standard, no padding": base64.RawStdEncoding,
		"url": base64.URLEncoding, "url, no padding": base64.RawURLEncoding,
	} {
		for _, layout := range []string{"%s\n%s", "\n %s\t\r\n\r\n  %s  \r\n\n"} {
			m, err := vault.ParseMasterKeys(fmt.Sprintf(layout, newest, enc.EncodeToString(raw)))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if want == "" {
				want = fmt.Sprint(m)
			}
			if got := fmt.Sprint(m); got != want {
				t.Errorf("%s: keys are %s, want %s", name, got, want)
			}
		}
	}
}

func TestMasterKeyErrorNamesTheLineOnly(t *testing.T) {
	t.Parallel()
	good := vault.GenerateMasterKey()
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "none given"},
		{"blank", " \n\r\n\t", "none given"},
		{"not base64", "\n" + canary, "line 2:"},
		{"too short", good + "\n" + base64.StdEncoding.EncodeToString([]byte(canary)), "line 2:"},
		{"too long", base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 33)), "line 1:"},
		{"31 bytes", base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 31)), "line 1:"},
		{"two on a line", good + " " + good, "line 1:"},
		{"more padding", good + "=", "line 1:"},
		{"trailing bits", strings.Repeat("A", 42) + "B", "line 1:"},
		{"both alphabets", "+-" + strings.Repeat("A", 41), "line 1:"},
		{"the same twice", good + "\n\n" + strings.TrimSuffix(good, "="), "line 3: the same as on line 1"},
	} {
		m, err := vault.ParseMasterKeys(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: ParseMasterKeys() = %v, %v, want an error with %q", c.name, m, err, c.want)
			continue
		}
		for _, line := range strings.Fields(c.text) {
			if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), line) {
				t.Errorf("%s: %v holds the line", c.name, err)
			}
		}
	}
}

func TestGeneratedMasterKeysDiffer(t *testing.T) {
	t.Parallel()
	a, b := vault.GenerateMasterKey(), vault.GenerateMasterKey()
	if a == b || len(a) != 44 {
		t.Errorf("GenerateMasterKey() twice = %d and %d characters, equal %v; want 44, different", len(a), len(b), a == b)
	}
}

func TestDataKeyUnwrapsForItsOwnerOnly(t *testing.T) {
	t.Parallel()
	m := newMasterKeys(t)
	rapid.Check(t, func(t *rapid.T) {
		owner := vault.Owner{Purpose: part().Draw(t, "purpose"), ID: part().Draw(t, "id")}
		other := vault.Owner{Purpose: part().Draw(t, "other purpose"), ID: part().Draw(t, "other id")}
		key, wrapped, err := m.NewDataKey(owner)
		if err != nil {
			t.Fatal(err)
		}
		again, err := m.Unwrap(owner, wrapped)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := key.Seal(somewhere, vault.NewSecret([]byte(canary)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again.Open(somewhere, sealed); err != nil {
			t.Fatalf("the unwrapped key does not open what the key sealed: %v", err)
		}
		if other == owner {
			return
		}
		if _, err := m.Unwrap(other, wrapped); !errors.Is(err, vault.ErrTampered) {
			t.Fatalf("wrapped for %q, Unwrap for %q = %v, want ErrTampered", owner, other, err)
		}
	})
}

func TestOwnerWithoutAPartIsRefused(t *testing.T) {
	t.Parallel()
	m := newMasterKeys(t)
	for _, owner := range []vault.Owner{{}, {Purpose: "organisation"}, {ID: "org_1"}} {
		if _, _, err := m.NewDataKey(owner); err == nil {
			t.Errorf("NewDataKey(%+v) succeeds, want an error", owner)
		}
		if _, err := m.Unwrap(owner, nil); err == nil {
			t.Errorf("Unwrap(%+v) succeeds, want an error", owner)
		}
	}
}

func TestOldMasterKeyUnwrapsAndNewestWraps(t *testing.T) {
	t.Parallel()
	oldText, newText := vault.GenerateMasterKey(), vault.GenerateMasterKey()
	parse := func(text string) *vault.MasterKeys {
		m, err := vault.ParseMasterKeys(text)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	older, both, newer := parse(oldText), parse(newText+"\n"+oldText), parse(newText)
	_, wrapped, err := older.NewDataKey(organisation)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := both.Unwrap(organisation, wrapped); err != nil {
		t.Errorf("Unwrap with the old key second: %v", err)
	}
	if _, err := newer.Unwrap(organisation, wrapped); !errors.Is(err, vault.ErrUnknownKey) {
		t.Errorf("Unwrap without the old key = %v, want ErrUnknownKey", err)
	}
	_, wrapped, err = both.NewDataKey(organisation)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newer.Unwrap(organisation, wrapped); err != nil {
		t.Errorf("Unwrap what the newest of both wrapped: %v", err)
	}
}

func TestASealedSecretIsNotAWrappedKey(t *testing.T) {
	t.Parallel()
	m := newMasterKeys(t)
	key, wrapped, err := m.NewDataKey(organisation)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := key.Open(somewhere, wrapped); !errors.Is(err, vault.ErrUnknownKey) {
		t.Errorf("Open(wrapped key) = %v, want ErrUnknownKey", err)
	}
}

func TestKeysPrintTheirIDsOnly(t *testing.T) {
	t.Parallel()
	text := vault.GenerateMasterKey()
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	m, err := vault.ParseMasterKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := m.NewDataKey(organisation)
	if err != nil {
		t.Fatal(err)
	}
	hidden := struct {
		m *vault.MasterKeys
		k *vault.DataKey
	}{m, key}
	var out bytes.Buffer
	for _, h := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		slog.New(h).Info("keys", "master", m, "data", key, "both", hidden)
	}
	fmt.Fprintf(&out, "%v %+v %#v %x %s %d", m, m, m, m, m, m)
	fmt.Fprintf(&out, "%v %+v %#v %x %s %d", key, key, key, key, key, key)
	fmt.Fprintf(&out, "%v %+v %#v %x", hidden, hidden, hidden, hidden)
	if err := json.NewEncoder(&out).Encode([]any{m, key, hidden}); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	for _, form := range []string{text[:20], fmt.Sprintf("%x", raw[:8]), strings.Trim(fmt.Sprint(raw[:8]), "[]")} {
		if strings.Contains(got, form) {
			t.Errorf("printed keys hold %q:\n%s", form, got)
		}
	}
	for _, want := range []string{"master keys ", "data key "} {
		if !strings.Contains(got, want) {
			t.Errorf("printed keys lack %q:\n%s", want, got)
		}
	}
	var noMaster *vault.MasterKeys
	var noData *vault.DataKey
	if got, want := fmt.Sprint(noMaster, ", ", noData), "no master keys, no data key"; got != want {
		t.Errorf("Sprint(nil keys) = %q, want %q", got, want)
	}
}

func FuzzParseMasterKeys(f *testing.F) {
	good := vault.GenerateMasterKey()
	for _, seed := range []string{"", "\n", good, good + "\r\n" + vault.GenerateMasterKey(), good + "\n" + good, canary, "====", good[:20] + "\r" + good[20:]} {
		f.Add(seed)
	}
	sentence := regexp.MustCompile(`^master keys: none given$|^master key on line \d+: (not the base64 of 32 bytes|the same as on line \d+)$`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := vault.ParseMasterKeys(text)
		if err != nil {
			if !sentence.MatchString(err.Error()) {
				t.Errorf("ParseMasterKeys(%q) = %v, which says more than the line", text, err)
			}
			return
		}
		_, wrapped, err := m.NewDataKey(organisation)
		if err != nil {
			t.Fatal(err)
		}
		// Each line alone is a key that parses, and the first is the one that wraps.
		first := true
		for line := range strings.SplitSeq(text, "\n") {
			if strings.TrimSpace(line) == "" {
				continue
			}
			one, err := vault.ParseMasterKeys(line)
			if err != nil {
				t.Fatalf("ParseMasterKeys(%q) succeeds, but its line %q does not: %v", text, line, err)
			}
			if _, err := one.Unwrap(organisation, wrapped); (err == nil) != first {
				t.Errorf("line %q unwraps what the keys wrapped: %v, want only the first line to", line, err)
			}
			first = false
		}
	})
}
