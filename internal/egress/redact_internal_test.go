package egress

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/vault"
)

func redactorOf(t testing.TB, secrets ...string) *redactor {
	t.Helper()
	var sealed []vault.Secret
	for _, s := range secrets {
		sealed = append(sealed, vault.NewSecret([]byte(s)))
	}
	r, err := newRedactor(sealed)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// chunks is a body that comes in pieces.
type chunks struct {
	pieces []string
	end    error
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.pieces) == 0 {
		return 0, c.end
	}
	n := copy(p, c.pieces[0])
	if c.pieces[0] = c.pieces[0][n:]; c.pieces[0] == "" {
		c.pieces = c.pieces[1:]
	}
	return n, nil
}

// through is what a body is after redaction, read with room for size bytes.
func through(t testing.TB, r *redactor, size int, pieces ...string) string {
	t.Helper()
	body := &chunks{pieces: pieces, end: io.EOF}
	var out bytes.Buffer
	for p := make([]byte, size); ; {
		n, err := r.read(p, body.Read)
		out.Write(p[:n])
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			return out.String()
		}
	}
}

func jsonOf(s string, escapeHTML bool) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(escapeHTML)
	_ = e.Encode(s) // a string
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(out.String()), `"`), `"`)
}

// escapeEach writes every byte of s in a format.
func escapeEach(s, format string) string {
	var out strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&out, format, c)
	}
	return out.String()
}

// formsOf are the texts that a secret may be answered as, by what makes them. They are made with the standard library, not
// as the redactor makes its own.
func formsOf(s string) map[string]string {
	std, raw := base64.StdEncoding, base64.RawURLEncoding
	forms := map[string]string{
		"raw": s, "query": url.QueryEscape(s), "path": url.PathEscape(s), "%20": strings.ReplaceAll(url.QueryEscape(s), "+", "%20"),
		"lower percent": lowerPercent(url.QueryEscape(s)), "lower path": lowerPercent(url.PathEscape(s)),
		"JSON": jsonOf(s, false), "JSON for HTML": jsonOf(s, true), "JSON with slashes": strings.ReplaceAll(jsonOf(s, false), "/", `\/`),
		"JSON in JSON": jsonOf(jsonOf(s, false), false), "HTML": html.EscapeString(s),
		"base64": std.EncodeToString([]byte(s)), "base64 URL": base64.URLEncoding.EncodeToString([]byte(s)),
		"raw base64": base64.RawStdEncoding.EncodeToString([]byte(s)), "raw base64 URL": raw.EncodeToString([]byte(s)),
		"base64 in JSON": strings.ReplaceAll(std.EncodeToString([]byte(s)), "/", `\/`), "base64 in a URL": strings.TrimRight(url.QueryEscape(base64.RawStdEncoding.EncodeToString([]byte(s))), "="),
		"hex": hex.EncodeToString([]byte(s)), "upper hex": strings.ToUpper(hex.EncodeToString([]byte(s))),
		"all percent": escapeEach(s, "%%%02X"), "all lower percent": escapeEach(s, "%%%02x"),
	}
	if !utf8.ValidString(s) { // JSON and HTML cannot hold it
		for _, name := range []string{"JSON", "JSON for HTML", "JSON with slashes", "JSON in JSON", "HTML"} {
			forms[name] = s
		}
	}
	ascii := true
	for _, c := range []byte(s) {
		ascii = ascii && c < 0x80
	}
	if ascii {
		forms[`all \u`], forms[`all lower \u`] = escapeEach(s, `\u%04X`), escapeEach(s, `\u%04x`)
	}
	return forms
}

func lowerPercent(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// embedded are base64 texts that hold s at each place of a group of three, and the part of each that is made of s alone.
func embedded(before, s, after string) map[string]string {
	all := map[string]string{}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		text := enc.EncodeToString([]byte(before + s + after))
		from, to := (8*len(before)+5)/6, 8*(len(before)+len(s))/6
		all[text] = text[from:to]
	}
	return all
}

const sample = `sk-live/+&<é "'\Z9=`

func TestEveryFormOfASecretIsRedacted(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{sample, "plain1234", "correct horse battery staple", "ÄÖÜß-passwort", "a\nb\tc d/e?f", "12345678", "𝄞𝄞𝄞-key", "\xff\xfe binary", strings.Repeat("long/", 500)} {
		r := redactorOf(t, "another-secret", secret)
		for name, form := range formsOf(secret) {
			if len(form) > maxEscaped*6 {
				continue // each character of a long one escaped
			}
			for _, around := range [][2]string{{"", ""}, {`{"token":"`, `"}`}, {"?key=", "&x=1"}, {"<", ">"}} {
				want := around[0] + marker + around[1]
				for _, size := range []int{1, 7, 1 << 16} {
					r.found = false
					r.err = nil
					got := through(t, r, size, around[0]+form+around[1])
					if got = strings.TrimRight(strings.Replace(got, marker+"==", marker, 1), "="); got != strings.TrimRight(want, "=") || !r.found {
						t.Fatalf("%s of %.40q between %q, read by %d: %.200q, want %q", name, secret, around, size, got, want)
					}
				}
			}
		}
		for _, before := range []string{"", "x", "xy", "xyz", "user:"} {
			for text, part := range embedded(before, secret, "!!") {
				r.err = nil
				if got := through(t, r, 1<<16, `{"a":"`+text+`"}`); strings.Contains(got, part) || !strings.Contains(got, marker) {
					t.Errorf("%.40q after %q in base64: %.200q", secret, before, got)
				}
			}
		}
	}
}

func TestSecretTypedAsAWholeHeaderIsRedactedWithoutItsScheme(t *testing.T) {
	t.Parallel()
	r := redactorOf(t, "Bearer abcdefgh-1", "ApiKey  ijklmnop-2", "two words")
	if got := through(t, r, 100, `{"got":"abcdefgh-1","all":"Bearer abcdefgh-1","key":"ijklmnop-2","words":"words"}`); got != `{"got":"[redacted]","all":"[redacted]","key":"[redacted]","words":"words"}` {
		t.Errorf("got %s", got)
	}
}

func TestSecretsThatOverlapLeaveNothing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"<xxxxABCD1234yyyy>":           "<[redacted]>",
		"<ABCD1234>":                   "<[redacted]>",
		"<ABCD1234ABCD1234>":           "<[redacted][redacted]>",
		"<xxxxABCD123>":                "<xxxxABCD123>",
		"<aaaaaaaaaaaaaaaaaaaaaaaaaa>": "<[redacted]>",
		"xxxxABCD12":                   "xxxxABCD12",
		"xxxxABCD1234yyy":              "[redacted]yyy",
	} {
		for size := range 20 {
			r := redactorOf(t, "xxxxABCD1234", "ABCD1234", "ABCD1234yyyy", "aaaaaaaa")
			if got := through(t, r, size+1, strings.Split(text, "")...); got != want {
				t.Errorf("%s read by %d: %s, want %s", text, size+1, got, want)
			}
		}
	}
}

func TestShortSecretsAreNotLookedFor(t *testing.T) {
	t.Parallel()
	if r := redactorOf(t, "1234567", ""); r != nil {
		t.Error("there is a redactor for a secret of seven bytes")
	}
	if r, err := newRedactor(nil); r != nil || err != nil {
		t.Errorf("newRedactor(nil) = %v, %v", r, err)
	}
}

// What is held back is the beginning of something looked for, and no more.
func TestStreamIsNotHeldUpByRedaction(t *testing.T) {
	t.Parallel()
	r := redactorOf(t, "CANARY-1234")
	p := make([]byte, 100)
	for _, step := range []struct{ comes, goes string }{
		{"data: hello\n\n", "data: hello\n\n"},
		{"data: CANA", "data: "},
		{"RI\n\n", "CANARI\n\n"},
		{"data: CANARY", "data: "},
		{"-123", ""},
		{"4\n\n", "[redacted]\n\n"},
		{"CANARY-1234", "[redacted]"},
		{"x%43", "x"},
		{"%", ""},
		{"!", "%43%!"},
	} {
		body := &chunks{pieces: []string{step.comes}, end: errClosed}
		var got string
		for len(body.pieces) > 0 || r.told < len(r.out) {
			if len(body.pieces) > 0 {
				if n := r.more(p, body.Read); n > 0 {
					got += string(p[:n])
				}
			}
			got += string(r.out[r.told:])
			r.told = len(r.out)
		}
		if got != step.goes {
			t.Errorf("of %q comes %q, want %q", step.comes, got, step.goes)
		}
	}
}

func TestBodyThatBreaksOffTellsNoBeginningOfASecret(t *testing.T) {
	t.Parallel()
	r := redactorOf(t, "CANARY-1234")
	body := &chunks{pieces: []string{"text CANARY-123"}, end: errPacked}
	p := make([]byte, 1000) // so much that it is read into itself
	n, err := r.read(p, body.Read)
	if string(p[:n]) != "text " || err != nil {
		t.Errorf("read = %q, %v", p[:n], err)
	}
	if bytes.Contains(p, []byte("CANARY")) {
		t.Errorf("the reader's memory holds %q", p)
	}
	if n, err = r.read(p, body.Read); n != 0 || !errors.Is(err, errPacked) {
		t.Errorf("read = %q, %v, want the error alone", p[:n], err)
	}
}

func TestNeedlesAreWipedAndNothingIsReadAfterwards(t *testing.T) {
	t.Parallel()
	r := redactorOf(t, "CANARY-1234")
	arena := r.search.needles.arena
	body := &chunks{pieces: []string{"CANARY-", "1234"}}
	p := make([]byte, 100)
	_ = r.more(p, body.Read)
	carry := r.carry
	r.wipe()
	for _, b := range [][]byte{arena[:cap(arena)], carry[:cap(carry)]} {
		if bytes.ContainsFunc(b, func(c rune) bool { return c != 0 }) {
			t.Error("something is left")
		}
	}
	if n, err := r.read(p, body.Read); n != 0 || !errors.Is(err, errClosed) {
		t.Errorf("read = %q, %v, want errClosed", p[:n], err)
	}
	(*redactor)(nil).wipe()
}

func TestNeedlesLiveAsLongAsTheCall(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	t.Cleanup(srv.Close)
	c, err := New(Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	hosts, err := ParseHosts(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	in, err := Bearer(vault.NewSecret([]byte("CANARY-1234")))
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Stream(t.Context(), Request{URL: srv.URL, Hosts: hosts, Inject: []Injection{in}})
	if err != nil {
		t.Fatal(err)
	}
	if s.redact == nil || s.redact.search == nil {
		t.Fatal("the stream is not searched")
	}
	_ = s.Close()
	if s.redact.search != nil {
		t.Error("the needles outlive the call")
	}
	s.body = io.NopCloser(strings.NewReader("that had arrived")) // and is read by a reader that was under way
	if n, err := s.Read(make([]byte, 100)); n != 0 || reason.Of(err).Word != reason.Cancelled || !errors.Is(err, ErrSent) {
		t.Errorf("Read after Close = %d, %v, want cancelled, and ErrSent", n, err)
	}
	if s, err = c.Stream(t.Context(), Request{URL: srv.URL, Hosts: hosts}); err != nil || s.redact != nil {
		t.Errorf("a call without credential: %v, and is searched", err)
	}
	_ = s.Close()
}

func TestHeadersAreRedacted(t *testing.T) {
	t.Parallel()
	r := redactorOf(t, "CANARY/1234")
	h := http.Header{"Location": {"https://x.test/?key=CANARY%2F1234&a=b"}, "Set-Cookie": {"a=1", "s=Q0FOQVJZLzEyMzQ=; Secure"}, "X-Kept": {"CANARY"}}
	r.header(h)
	if got := fmt.Sprint(h); got != "map[Location:[https://x.test/?key=[redacted]&a=b] Set-Cookie:[a=1 s=[redacted]; Secure] X-Kept:[CANARY]]" || !r.found {
		t.Errorf("header = %s", got)
	}
}

// split cuts text at random places.
func split(t *rapid.T, text string) []string {
	var pieces []string
	for text != "" {
		n := min(rapid.IntRange(1, 40).Draw(t, "piece"), len(text))
		pieces, text = append(pieces, text[:n]), text[n:]
	}
	return pieces
}

var secrets = rapid.OneOf(
	rapid.StringMatching(`[A-Za-z0-9_.~-]{8,60}`),
	rapid.StringMatching(`[ -~]{8,40}`),
	rapid.Map(rapid.SliceOfN(rapid.Byte(), 8, 40), func(b []byte) string { return string(b) }),
	rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 8, 20, -1), // which overlaps itself
	rapid.StringN(8, 30, -1),
)

func TestNoFormOfASecretIsEverReadProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(secrets, 1, 3).Draw(t, "secrets")
		var sealed []vault.Secret
		var text strings.Builder
		var banned []string
		for _, s := range all {
			sealed = append(sealed, vault.NewSecret([]byte(s)))
			for _, name := range []string{"raw", "query", "lower path", "JSON", "JSON with slashes", "base64", "raw base64 URL", "hex", "upper hex", "all percent"} {
				form := formsOf(s)[name]
				banned = append(banned, strings.TrimRight(form, "="))
				text.WriteString(rapid.StringMatching(`[ -~]{0,12}`).Draw(t, "between"))
				if rapid.Bool().Draw(t, name) {
					text.WriteString(form)
				}
			}
			before := rapid.StringMatching(`[a-z:]{0,5}`).Draw(t, "before")
			for whole, part := range embedded(before, s, "after") {
				text.WriteString(whole)
				banned = append(banned, part)
			}
		}
		r, err := newRedactor(sealed)
		if err != nil {
			t.Fatal(err)
		}
		body := &chunks{pieces: split(t, text.String()), end: io.EOF}
		var out bytes.Buffer
		for p := make([]byte, rapid.IntRange(1, 2000).Draw(t, "room")); ; {
			n, err := r.read(p, body.Read)
			out.Write(p[:n])
			if err != nil {
				break
			}
		}
		for _, b := range banned {
			// A secret may be a part of the marker, or meet it.
			if strings.Contains(strings.ReplaceAll(out.String(), marker, "\x00\x01"), b) && len(b) >= minNeedle {
				t.Fatalf("%q is in %q, which is made of %q", b, out.String(), text.String())
			}
		}
	})
}

func TestTextWithoutASecretIsUnchangedProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[A-Za-z0-9/+]{12,40}`).Draw(t, "secret")
		r, err := newRedactor([]vault.Secret{vault.NewSecret([]byte(secret))})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for range rapid.IntRange(0, 20).Draw(t, "parts") {
			forms := formsOf(secret)
			form := forms[rapid.SampledFrom([]string{"raw", "base64", "hex", "all percent", "JSON with slashes"}).Draw(t, "form")]
			text.WriteString(form[:rapid.IntRange(0, minNeedle-1).Draw(t, "cut")]) // beginnings
			text.WriteString(rapid.StringMatching(`[ -~\n]{1,20}|[\x00-\xff]{1,20}`).Draw(t, "more"))
			text.WriteString("\x00")
		}
		body := &chunks{pieces: split(t, text.String()), end: io.EOF}
		var out bytes.Buffer
		for p := make([]byte, rapid.IntRange(1, 2000).Draw(t, "room")); ; {
			n, err := r.read(p, body.Read)
			out.Write(p[:n])
			if err != nil {
				break
			}
		}
		if out.String() != text.String() || r.found {
			t.Fatalf("%q became %q", text.String(), out.String())
		}
	})
}

// FuzzRedact holds that a body is redacted the same however it is cut, and that nothing of the secret is left.
func FuzzRedact(f *testing.F) {
	f.Add("CANARY-1234", "text CANARY-1234 and Q0FOQVJZLTEyMzQ= and 43414e4152592d31323334", uint8(3), uint8(5))
	f.Add(sample, url.QueryEscape(sample)+jsonOf(sample, true)+sample, uint8(1), uint8(1))
	f.Add("aaaaaaaa", strings.Repeat("a", 100), uint8(7), uint8(200))
	f.Add("abababab", "aabababababababbabababab", uint8(2), uint8(9))
	f.Fuzz(func(t *testing.T, secret, text string, piece, room uint8) {
		if strings.Contains(marker+marker, secret) || len(secret) > 1000 {
			return
		}
		whole := redactorOf(t, secret, "CANARY-1234")
		want := through(t, whole, 1<<16, text)
		var pieces []string
		for rest := text; rest != ""; {
			n := min(int(piece)+1, len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if got := through(t, redactorOf(t, secret, "CANARY-1234"), int(room)+1, pieces...); got != want {
			t.Errorf("%q in pieces is %q, want %q", text, got, want)
		}
		if whole.found != (want != text) {
			t.Errorf("found = %t, and %q became %q", whole.found, text, want)
		}
		if len(secret) >= minNeedle && strings.Contains(strings.ReplaceAll(want, marker, "\x00\x01\x00"), secret) && !strings.ContainsAny(secret, "\x00\x01") {
			t.Errorf("%q is in %q", secret, want)
		}
	})
}

// BenchmarkRedact is what redaction costs for each byte, beside copying it.
func BenchmarkRedact(b *testing.B) {
	r := redactorOf(b, "sk-live-4eC39HqLyjWDarjtT1zdp7dc", "AKIA/IOSFODNN7+EXAMPLEKEYwJalrXUtnFEMI", "user@example.com:correct horse battery staple")
	object := `{"id":"evt_1MqqbKLt4dXK03v5","object":"event","created":1680064028,"data":{"name":"Jos\u00e9 Smith","url":"https://api.example.com/v1/things?limit=10&after=%2Fx","note":"text in plain words, as there is in most answers"}},` + "\n"
	bodies := map[string][]byte{
		"json":   bytes.Repeat([]byte(object), (1<<20)/len(object)),
		"base64": []byte(base64.StdEncoding.EncodeToString(noise(1 << 20))),
		"binary": noise(1 << 20),
	}
	for _, name := range []string{"json", "base64", "binary"} {
		body := bodies[name]
		p := make([]byte, 32<<10)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				r.err, r.told = nil, len(r.out)
				from := bytes.NewReader(body)
				for {
					if _, err := r.read(p, from.Read); err != nil {
						break
					}
				}
			}
		})
		b.Run(name+"/copied", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				from := bytes.NewReader(body)
				for {
					if _, err := from.Read(p); err != nil {
						break
					}
				}
			}
		})
	}
}

// BenchmarkRedactor is what it costs to get ready for a request's one credential.
func BenchmarkRedactor(b *testing.B) {
	for name, plain := range map[string]string{
		"token": "sk-live-4eC39HqLyjWDarjtT1zdp7dc", "base64": "dXNlckBleGFtcGxlLmNvbTpjb3JyZWN0IGhvcnNl+/==", "password": `p4$$ w"rd/&<é>`, "long": string(bytes.Repeat([]byte("eyJhbGci.OiJI_"), 100)),
	} {
		b.Run(name, func(b *testing.B) {
			secret := []vault.Secret{vault.NewSecret([]byte(plain))}
			b.ReportAllocs()
			for b.Loop() {
				r, err := newRedactor(secret)
				if err != nil {
					b.Fatal(err)
				}
				r.wipe()
			}
		})
	}
}

// noise is bytes without any order, always the same.
func noise(n int) []byte {
	b := make([]byte, n)
	for i, x := 0, uint32(1); i < n; i++ {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}
