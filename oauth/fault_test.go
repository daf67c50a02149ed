package oauth

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/getgraft/graft/internal/reason"
)

// written is what writeFault writes.
func written(t testing.TB, f Fault) (status int, header http.Header, body map[string]string) {
	t.Helper()
	w := httptest.NewRecorder()
	writeFault(w, f)
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	return w.Code, w.Header(), body
}

func TestFaultsAreTheProtocols(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fault  Fault
		status int
		code   string
		header map[string]string
	}{
		{invalidRequest("a"), 400, "invalid_request", nil},
		{invalidGrant("a"), 400, "invalid_grant", nil},
		{invalidScope("a"), 400, "invalid_scope", nil},
		{invalidTarget("a"), 400, "invalid_target", nil},
		{unsupportedGrantType("a"), 400, "unsupported_grant_type", nil},
		{unsupportedResponseType("a"), 400, "unsupported_response_type", nil},
		{invalidRedirectURI("a"), 400, "invalid_redirect_uri", nil},
		{invalidClientMetadata("a"), 400, "invalid_client_metadata", nil},
		{requestNotSupported, 400, "request_not_supported", nil},
		{requestURINotSupported, 400, "request_uri_not_supported", nil},
		{invalidClient(false, "a"), 401, "invalid_client", nil},
		{invalidClient(true, "a"), 401, "invalid_client", map[string]string{"WWW-Authenticate": `Basic realm="Graft", charset="UTF-8"`}},
		{serverError, 500, "server_error", nil},
		{temporarilyUnavailable, 503, "temporarily_unavailable", map[string]string{"Retry-After": "1"}},
	} {
		status, header, body := written(t, tt.fault)
		if status != tt.status || body["error"] != tt.code || body["error_description"] == "" || len(body) != 2 {
			t.Errorf("%v is answered %d %v, want %d %s", tt.fault, status, body, tt.status, tt.code)
		}
		for _, name := range []string{"WWW-Authenticate", "Retry-After"} {
			if got := header.Get(name); got != tt.header[name] {
				t.Errorf("%v has %s: %q, want %q", tt.fault, name, got, tt.header[name])
			}
		}
		for name, want := range map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store", "Pragma": "no-cache"} {
			if got := header.Get(name); got != want {
				t.Errorf("%v has %s: %q, want %q", tt.fault, name, got, want)
			}
		}
		if !strings.HasPrefix(tt.fault.Error(), tt.code+": ") {
			t.Errorf("Error() = %q", tt.fault.Error())
		}
	}
}

// A database that is away is never the client's fault, and what else goes wrong is not told.
func TestWhatIsNoFaultBlamesNobody(t *testing.T) {
	t.Parallel()
	away := fmt.Errorf("load: %w: %w", reason.Refuse(reason.Unavailable, "secret words"), errors.New("dial tcp 10.0.0.1"))
	for _, tt := range []struct {
		err  error
		want Fault
	}{
		{invalidGrant("a"), invalidGrant("a")},
		{fmt.Errorf("code: %w", invalidGrant("no %s", "code")), invalidGrant("no code")},
		{away, temporarilyUnavailable},
		{errors.New("secret words"), serverError},
		{reason.Refuse(reason.NotFoundWord, "secret words"), serverError},
		{fmt.Errorf("%w", http.ErrHandlerTimeout), serverError},
	} {
		got := faultOf(tt.err)
		if got != tt.want {
			t.Errorf("faultOf(%v) = %v, want %v", tt.err, got, tt.want)
		}
		if _, _, body := written(t, got); strings.Contains(body["error_description"], "secret") || strings.Contains(body["error_description"], "10.0") {
			t.Errorf("%v is answered %v", tt.err, body)
		}
	}
}

func FuzzFaultDescription(f *testing.F) {
	for _, s := range []string{"", "a \"quoted\" \\ word", "\u00fcber\r\nSet-Cookie: a", "\xff\x00", strings.Repeat("\u2603", 500)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, _, body := written(t, invalidRequest("%s", s))
		got := body["error_description"]
		// RFC 6749 §5.2: %x20-21 / %x23-5B / %x5D-7E.
		if len(got) > 400 || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
			t.Errorf("description of %q = %q", s, got)
		}
	})
}
