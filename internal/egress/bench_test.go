package egress_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/getgraft/graft/internal/egress"
)

// BenchmarkDo says what policy, pin, injection, redaction and bounds cost over a bare client: rounds of both take turns on one
// server, so that what else the machine does is in both alike.
func BenchmarkDo(b *testing.B) {
	srv := httptest.NewTLSServer(http.HandlerFunc(small))
	b.Cleanup(srv.Close)
	c := newClient(b, egress.Config{Allow: loopback, RootCAs: trust(srv)})
	bare := srv.Client()
	address := srv.URL + "/v1/things?limit=10"
	in, none := []egress.Injection{bearer(b, canary)}, []egress.Injection(nil)
	hosts := hostsOf(b, srv.URL)
	ours := func(in []egress.Injection) error {
		_, err := c.Do(b.Context(), egress.Request{URL: address, Hosts: hosts, Inject: in})
		return err
	}
	theirs := func() error {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+canary)
		resp, err := bare.Do(req)
		if err != nil {
			return err
		}
		_, err = io.ReadAll(resp.Body)
		return errors.Join(err, resp.Body.Close())
	}
	const round = 50
	var took [3]time.Duration
	rounds := 0
	for b.Loop() {
		for i, call := range []func() error{theirs, func() error { return ours(none) }, func() error { return ours(in) }} {
			began := time.Now()
			for range round {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
			took[i] += time.Since(began)
		}
		rounds++
	}
	each := func(i int) float64 { return float64(took[i].Microseconds()) / float64(rounds*round) }
	b.ReportMetric(each(0), "µs/bare")
	b.ReportMetric(each(1)-each(0), "µs/added-without-credential")
	b.ReportMetric(each(2)-each(0), "µs/added")
	b.ReportMetric(0, "ns/op") // of a round of all three, which says nothing
}

func small(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, strings.Repeat("x", 1000))
}
