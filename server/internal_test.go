package server

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/getgraft/graft/internal/reason"
)

func TestRatesRead(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]rate{
		"off": {}, "10/m": {10, time.Minute}, "20/s": {20, time.Second}, "50/s:200": {200, 4 * time.Second}, "6/m:60": {60, 10 * time.Minute},
	} {
		if got, err := parseRate(in); err != nil || got != want {
			t.Errorf("parseRate(%q) = %+v, %v; want %+v", in, got, err, want)
		}
	}
}

// A face that answers a refusal itself says the word, and the request's one log line has it.
func TestReasonsThatAFaceAnswersAreLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := &Server{log: slog.New(slog.NewTextHandler(&log, nil)), metrics: newMetrics("test", func() int { return 0 })}
	r := chi.NewRouter()
	r.Use(s.withEvent)
	r.Get("/face", func(w http.ResponseWriter, r *http.Request) {
		noteReason(r.Context(), reason.NameTaken)
		w.WriteHeader(http.StatusConflict)
	})
	r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/face", nil))
	if line := log.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, "status=409") || !strings.Contains(line, "reason=name_taken") {
		t.Errorf("log = %q, want one line with the status and the reason", line)
	}
	noteReason(t.Context(), reason.NameTaken) // outside of a request there is no line, and no harm
}

// X-Forwarded-For is a header that anybody can send: only what trusted proxies added to it counts.
func TestAddressBelievesTrustedProxiesOnly(t *testing.T) {
	t.Parallel()
	c := Config{Database: Database{DatabaseConns: 2, Log: "text"}, Address: Address{Listen: ":8080"}, TrustedProxies: []string{"10.0.0.0/8", "127.0.0.1", "fd00::/8"}, RateMCP: "off", RateSignIn: "off", RateAPI: "off", RateOAuth: "off", RateRegister: "off"}
	set, err := c.settle()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{c: set}
	for _, x := range []struct {
		remote string
		xff    []string
		want   string
	}{
		{"192.0.2.9:5", nil, "192.0.2.9"},
		{"192.0.2.9:5", []string{"203.0.113.7"}, "192.0.2.9"},
		{"10.0.0.1:5", []string{"203.0.113.7"}, "203.0.113.7"},
		{"10.0.0.1:5", []string{"1.1.1.1, 203.0.113.7"}, "203.0.113.7"},
		{"10.0.0.1:5", []string{"1.1.1.1", "203.0.113.7, 10.0.0.2"}, "203.0.113.7"},
		{"10.0.0.1:5", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"10.0.0.1:5", []string{"nonsense"}, "10.0.0.1"},
		{"10.0.0.1:5", []string{"203.0.113.7, nonsense"}, "10.0.0.1"},
		{"10.0.0.1:5", nil, "10.0.0.1"},
		{"[fd00::1]:5", []string{"2001:db8::7"}, "2001:db8::7"},
		{"[::ffff:10.0.0.1]:5", []string{"203.0.113.7"}, "203.0.113.7"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = x.remote
		for _, h := range x.xff {
			r.Header.Add("X-Forwarded-For", h)
		}
		if got := s.address(r); got != x.want {
			t.Errorf("address of %s through %q = %s, want %s", x.remote, x.xff, got, x.want)
		}
	}
}

// Who has one IPv6 address has 2^64: attempts are counted by network.
func TestAddressesOfOneSubscriberAreCountedTogether(t *testing.T) {
	t.Parallel()
	s := &Server{}
	key := func(remote string) string {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/signin", nil)
		r.RemoteAddr = remote
		k, err := s.addressKey(r)
		if err != nil {
			t.Errorf("key of %s: %v", remote, err)
		}
		return k
	}
	for remote, want := range map[string]string{
		"[2001:db8:1:2::1]:5": "2001:db8:1:2::/64", "[2001:db8:1:2:ffff::9]:5": "2001:db8:1:2::/64", "[2001:db8:1:3::1]:5": "2001:db8:1:3::/64",
		"[fe80::1%eth0]:5": "fe80::/64", "192.0.2.9:5": "192.0.2.9", "[::ffff:192.0.2.9]:5": "::ffff:192.0.2.9", "@": "@",
	} {
		if got := key(remote); got != want {
			t.Errorf("key of %s = %s, want %s", remote, got, want)
		}
	}
}
