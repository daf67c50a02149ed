package vault_test

import (
	"bytes"
	"encoding"
	"encoding/gob"
	stdjson "encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"

	"github.com/getgraft/graft/internal/vault"
)

const canary = "CANARY-7f3a-sk"

// canaryForms are the spellings a printer might give the canary's bytes.
var canaryForms = []string{
	canary,
	fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), fmt.Sprintf("% x", canary),
	strings.Trim(fmt.Sprint([]byte(canary)), "[]"),
	strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", []byte(canary)), "[]byte{"), "}"),
	"Q0FOQVJZLTdmM2Etc2", // base64
}

func assertNoCanary(t *testing.T, where, got string) {
	t.Helper()
	for _, form := range canaryForms {
		if strings.Contains(got, form) {
			t.Errorf("%s = %q, which holds the secret as %q", where, got, form)
		}
	}
}

type holder struct {
	Name     string
	Open     vault.Secret
	hidden   vault.Secret
	Pointer  *vault.Secret
	pointers []*vault.Secret
}

// places returns values that hold the canary in every way a Go value may stand in another, each named.
// Secrets opened from a seal are tried as well as those made from text.
func places(t *testing.T) map[string]any {
	t.Helper()
	made := vault.NewSecret([]byte(canary))
	key := newDataKey(t)
	sealed, err := key.Seal(somewhere, made)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := key.Open(somewhere, sealed)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	for kind, s := range map[string]vault.Secret{"made": made, "opened": opened} {
		h := holder{Name: "n", Open: s, hidden: s, Pointer: &s, pointers: []*vault.Secret{&s}}
		all[kind+" value"] = s
		all[kind+" pointer"] = &s
		all[kind+" slice"] = []vault.Secret{s}
		all[kind+" array"] = [1]vault.Secret{s}
		all[kind+" map"] = map[string]vault.Secret{"k": s}
		all[kind+" any"] = []any{s, &s}
		all[kind+" struct"] = h
		all[kind+" struct pointer"] = &h
		all[kind+" unexported only"] = struct{ s vault.Secret }{s}
		all[kind+" nested unexported"] = struct{ m map[string][]holder }{map[string][]holder{"k": {h}}}
		all[kind+" error"] = fmt.Errorf("call: %w", fmt.Errorf("with %v and %x", s, s))
	}
	return all
}

func TestSecretIsNotPrinted(t *testing.T) {
	t.Parallel()
	flags := []string{"", "+", "#", "-", " ", "0", "+#", "# ", "10", "-40.3", "#+10.2"}
	for name, v := range places(t) {
		for _, flag := range flags {
			for _, verb := range "vTtbcdoOqxXUeEfFgGspwyz!" {
				format := "%" + flag + string(verb)
				assertNoCanary(t, fmt.Sprintf("Sprintf(%q, %s)", format, name), fmt.Sprintf(format, v))
			}
		}
		assertNoCanary(t, "Sprint "+name, fmt.Sprint(v))
		assertNoCanary(t, "extra argument "+name, fmt.Sprintf(strings.Repeat("no verb ", 2), v))
	}
	s := vault.NewSecret([]byte(canary))
	for _, verb := range "vtbcdoOqxXUeEfFgGs" {
		format := "%" + string(verb)
		if got := fmt.Sprintf(format, s); got != "[redacted]" {
			t.Errorf("Sprintf(%q, secret) = %q, want [redacted]", format, got)
		}
		if got := fmt.Sprintf(format, &s); got != "[redacted]" {
			t.Errorf("Sprintf(%q, &secret) = %q, want [redacted]", format, got)
		}
	}
	if got := s.String() + s.GoString(); got != "[redacted][redacted]" {
		t.Errorf("String and GoString = %q, want [redacted] twice", got)
	}
	var zero vault.Secret
	if got := fmt.Sprint(zero); got != "[redacted]" {
		t.Errorf("Sprint(zero secret) = %q, want the same as of any other", got)
	}
}

func TestSecretIsNotEncoded(t *testing.T) {
	t.Parallel()
	for name, v := range places(t) {
		for codec, encode := range map[string]func(any) ([]byte, error){
			"encoding/json": stdjson.Marshal,
			"json":          func(v any) ([]byte, error) { return json.Marshal(v) },
			"yaml":          func(v any) ([]byte, error) { return yaml.Marshal(v) },
			"xml":           xml.Marshal,
			"gob": func(v any) ([]byte, error) {
				var b bytes.Buffer
				err := gob.NewEncoder(&b).Encode(v)
				return b.Bytes(), err
			},
			"template": func(v any) ([]byte, error) {
				var b bytes.Buffer
				err := template.Must(template.New("").Parse(`<p title="{{.}}">{{.}}</p><script>x={{.}}</script>`)).Execute(&b, v)
				return b.Bytes(), err
			},
		} {
			got, err := encode(v)
			assertNoCanary(t, codec+" of "+name, string(got))
			if err != nil {
				assertNoCanary(t, codec+" error of "+name, fmt.Sprintf("%v %+v %#v", err, err, err))
			}
		}
	}
	type row struct{ Key vault.Secret }
	got, err := stdjson.Marshal(row{vault.NewSecret([]byte(canary))})
	if want := `{"Key":"[redacted]"}`; err != nil || string(got) != want {
		t.Errorf("Marshal = %s, %v, want %s", got, err, want)
	}
}

func TestSecretIsRefusedByBinaryEncodingsAndColumns(t *testing.T) {
	t.Parallel()
	s := vault.NewSecret([]byte(canary))
	var b encoding.BinaryMarshaler = s
	if got, err := b.MarshalBinary(); err == nil {
		t.Errorf("MarshalBinary() = %q, want an error", got)
	}
	if got, err := s.GobEncode(); err == nil {
		t.Errorf("GobEncode() = %q, want an error", got)
	}
	if got, err := s.Value(); err == nil {
		t.Errorf("Value() = %v, want an error", got)
	}
}

func TestSecretIsNotLogged(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	for _, h := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		log := slog.New(h)
		for name, v := range places(t) {
			log.Info("one", "place", name, "value", v)
			log.With("value", v).WithGroup("g").Info("two", slog.Any("value", v), slog.Group("in", "value", v))
		}
	}
	for line := range strings.Lines(out.String()) {
		assertNoCanary(t, "log line", line)
	}
	if !strings.Contains(out.String(), `"place":"made value","value":"[redacted]"`) {
		t.Errorf("log lacks the redacted value:\n%s", out.String())
	}
}

func TestSecretRevealsWhatItWasMadeOf(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		given := bytes.Clone(plain)
		s := vault.NewSecret(given)
		clear(given)
		for range 2 {
			if got := reveal(t, s); !bytes.Equal(got, plain) {
				t.Fatalf("Reveal gave %x, want %x", got, plain)
			}
		}
		if s.IsZero() != (len(plain) == 0) {
			t.Fatalf("IsZero() = %v of %d bytes", s.IsZero(), len(plain))
		}
	})
}

func TestRevealedBytesAreWiped(t *testing.T) {
	t.Parallel()
	var kept []byte
	boom := errors.New("boom")
	err := vault.NewSecret([]byte(canary)).Reveal(func(plain []byte) error {
		kept = plain
		return boom
	})
	if !errors.Is(err, boom) {
		t.Errorf("Reveal() = %v, want the error of use", err)
	}
	if len(kept) != len(canary) || !bytes.Equal(kept, make([]byte, len(canary))) {
		t.Errorf("after Reveal the buffer holds %q, want %d zeros", kept, len(canary))
	}
}

func TestSecretEqualComparesBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "a")
		b := rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "b")
		got := vault.NewSecret(a).Equal(vault.NewSecret(b))
		if want := bytes.Equal(a, b); got != want {
			t.Fatalf("Equal(%x, %x) = %v, want %v", a, b, got, want)
		}
	})
	var zero vault.Secret
	if !zero.Equal(vault.NewSecret(nil)) || !zero.IsZero() {
		t.Error("the zero secret is not the empty one")
	}
}

// reveal returns a copy of what s holds. These tests stand in for egress.
func reveal(t rapid.TB, s vault.Secret) []byte {
	t.Helper()
	var got []byte
	if err := s.Reveal(func(plain []byte) error {
		got = bytes.Clone(plain)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return got
}
