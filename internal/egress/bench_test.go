package egress_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/egress"
)

// The two beside each other say what policy, pin, injection and bounds cost over a bare client.

func BenchmarkDo(b *testing.B) {
	c, base := startVendor(b, egress.Limits{}, small)
	req := egress.Request{URL: base + "/v1/things?limit=10", Hosts: hostsOf(b, base), Inject: []egress.Injection{bearer(b, canary)}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Do(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBareClient(b *testing.B) {
	srv := httptest.NewTLSServer(http.HandlerFunc(small))
	b.Cleanup(srv.Close)
	c := srv.Client()
	b.ReportAllocs()
	for b.Loop() {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, srv.URL+"/v1/things?limit=10", nil)
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+canary)
		resp, err := c.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadAll(resp.Body); err != nil {
			b.Fatal(err)
		}
		_ = resp.Body.Close()
	}
}

func small(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, strings.Repeat("x", 1000))
}
