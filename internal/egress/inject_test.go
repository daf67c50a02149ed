package egress_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/vault"
)

// assertNoCanary looks for the canary in everything that a caller or a log could make of err.
func assertNoCanary(t testing.TB, err error) {
	t.Helper()
	var out bytes.Buffer
	for ; err != nil; err = errors.Unwrap(err) {
		fmt.Fprintf(&out, "%v\n%+v\n%#v\n%q\n", err, err, err, err)
		slog.New(slog.NewJSONHandler(&out, nil)).Error("call", "error", err, "all", []any{err})
		slog.New(slog.NewTextHandler(&out, nil)).Error("call", "error", err, "all", []any{err})
		_ = json.NewEncoder(&out).Encode(err)
	}
	var r *reason.Refusal
	if errors.As(err, &r) {
		fmt.Fprint(&out, r.Details)
	}
	for _, form := range []string{canary, url.QueryEscape(canary), base64.StdEncoding.EncodeToString([]byte(canary)), fmt.Sprintf("%x", canary)} {
		if strings.Contains(out.String(), form) {
			t.Errorf("%q stands in:\n%s", form, out.String())
		}
	}
}

func TestCredentialIsInjected(t *testing.T) {
	t.Parallel()
	arrived := make(chan http.Header, 1)
	c, base := startVendor(t, egress.Limits{}, func(_ http.ResponseWriter, r *http.Request) { arrived <- r.Header })
	keys, err := vault.ParseMasterKeys(vault.GenerateMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := keys.NewDataKey(vault.Owner{Purpose: "organisation", ID: "org_1"})
	if err != nil {
		t.Fatal(err)
	}
	place := vault.Place{Org: "org_1", Table: "connection", Row: "con_1", Column: "credential"}
	sealed, err := key.Seal(place, vault.NewSecret([]byte(canary)))
	if err != nil {
		t.Fatal(err)
	}
	secret, err := key.Open(place, sealed)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []struct {
		header, prefix string
		name, want     string
	}{
		{"Authorization", "Bearer", "Authorization", "Bearer " + canary},
		{"authorization", "token", "Authorization", "token " + canary},
		{"x-api-key", "", "X-Api-Key", canary},
	} {
		injection, err := egress.Header(in.header, in.prefix, secret)
		if err != nil {
			t.Errorf("Header(%q, %q): %v", in.header, in.prefix, err)
			continue
		}
		_, err = c.Do(t.Context(), egress.Request{
			URL: base, Hosts: hostsOf(t, base), Inject: []egress.Injection{{}, injection},
			Header: http.Header{"Authorization": {"Bearer mine"}, "x-api-key": {"mine"}},
		})
		if err != nil {
			t.Errorf("%s: %v", in.header, err)
			continue
		}
		if values := (<-arrived)[in.name]; len(values) != 1 || values[0] != in.want {
			t.Errorf("%s = %q, want %q", in.name, values, in.want)
		}
	}
}

func TestCredentialThatNoHeaderMayCarryIsRefused(t *testing.T) {
	t.Parallel()
	secret := vault.NewSecret([]byte(canary))
	for _, in := range []struct {
		name, prefix string
		secret       vault.Secret
		field        string
	}{
		{"", "", secret, "header"},
		{"X Y", "", secret, "header"},
		{"X-Y\r\nZ", "", secret, "header"},
		{"Host", "", secret, "header"},
		{"content-length", "", secret, "header"},
		{"Connection", "", secret, "header"},
		{"transfer-encoding", "", secret, "header"},
		{"Proxy-Authorization", "", secret, "header"},
		{"X-Key", "a\nb", secret, "prefix"},
		{"X-Key", "", vault.Secret{}, "credential"},
	} {
		_, err := egress.Header(in.name, in.prefix, in.secret)
		assertRefused(t, fmt.Sprintf("Header(%q, %q)", in.name, in.prefix), err, reason.InputInvalid)
		if got := reason.Of(err).Details["field"]; got != in.field {
			t.Errorf("Header(%q, %q) is about %v, want %s", in.name, in.prefix, got, in.field)
		}
		assertNoCanary(t, err)
	}
	c, base := startVendor(t, egress.Limits{}, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the vendor got %v", r.Header)
	})
	for _, s := range []string{canary + "\n", canary + "\r\nX: y", canary + "\x00"} {
		_, err := get(t, c, base, "/", bearer(t, s))
		assertRefused(t, fmt.Sprintf("credential %q", s), err, reason.InputInvalid)
		assertNoCanary(t, err)
	}
}

func TestNoErrorHoldsWhatWasSentOrAnswered(t *testing.T) {
	t.Parallel()
	c := newClient(t, egress.Config{Allow: loopback, Resolver: serveDNS(t, nil), Limits: egress.Limits{ResponseBody: 100, ResponseHeaders: 1}})
	// A vendor that answers with the credential where errors of net/http would quote it.
	echo := func(format string) string {
		base, _ := serveRaw(t, func(conn net.Conn) { _, _ = fmt.Fprintf(conn, format, canary) })
		return base
	}
	for name, target := range map[string]string{
		"user":            "https://" + canary + "@vendor.test/",
		"password":        "https://user:" + canary + "@vendor.test/",
		"bad escape":      "https://vendor.test/%zz?key=" + canary,
		"control":         "https://vendor.test/\x7f?key=" + canary,
		"no scheme":       canary,
		"bad scheme":      canary + "://vendor.test/",
		"bad port":        "https://vendor.test:" + canary + "/",
		"not in set":      "https://other.test/" + canary + "?key=" + canary + "#" + canary,
		"no such name":    "https://vendor.test/" + canary + "?key=" + canary,
		"status line":     echo("HTTP/1.1 %s\r\n\r\n"),
		"version":         echo("HTTP/%s 200 OK\r\n\r\n"),
		"header line":     echo("HTTP/1.1 200 OK\r\n%s\r\n\r\n"),
		"header name":     echo("HTTP/1.1 200 OK\r\n%s \x00: x\r\n\r\n"),
		"content length":  echo("HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n"),
		"encoding":        echo("HTTP/1.1 200 OK\r\nTransfer-Encoding: %s\r\n\r\n"),
		"chunk":           echo("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\n"),
		"too many fields": echo("HTTP/1.1 200 OK\r\nA: %[1]s\r\nB: %[1]s\r\n\r\n"),
		"too long":        echo("HTTP/1.1 200 OK\r\n\r\n%s" + strings.Repeat("x", 100)),
	} {
		hosts := hostsOf(t, "vendor.test")
		if strings.HasPrefix(target, "http://127.") {
			hosts = hostsOf(t, target)
			target += "/?key=" + canary
		}
		_, err := c.Do(t.Context(), egress.Request{
			URL: target, Hosts: hosts, Header: http.Header{"X-Key": {canary}}, Body: []byte(canary), Inject: []egress.Injection{bearer(t, canary)},
		})
		var r *reason.Refusal
		if !errors.As(err, &r) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
		assertNoCanary(t, err)
	}
	for _, entry := range []string{canary + "@vendor.test", "https://u:" + canary + "@vendor.test", "vendor.test?key=" + canary, "vendor.test:" + canary, canary + "://x"} {
		_, err := egress.ParseHosts(entry)
		assertRefused(t, "ParseHosts", err, reason.InputInvalid)
		assertNoCanary(t, err)
	}
}

func TestRequestPrintsNoCredential(t *testing.T) {
	t.Parallel()
	req := egress.Request{Inject: []egress.Injection{bearer(t, canary)}}
	if got := fmt.Sprintf("%v %+v %#v", req, req, req); strings.Contains(got, canary) {
		t.Errorf("printed request holds the credential: %s", got)
	}
}
