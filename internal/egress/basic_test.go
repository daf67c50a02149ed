package egress_test

import (
	"net/http"
	"testing"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/vault"
)

func TestAClientsSecretIsInjected(t *testing.T) {
	t.Parallel()
	var user, password string
	c, base := startVendor(t, egress.Limits{}, func(_ http.ResponseWriter, r *http.Request) {
		user, password, _ = r.BasicAuth()
	})
	in, err := egress.Basic("graft at:home", vault.NewSecret([]byte("p%s+ ä"+canary)))
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := egress.ParseHosts(base)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(t.Context(), egress.Request{URL: base, Hosts: hosts, Inject: []egress.Injection{in}}); err != nil {
		t.Fatal(err)
	}
	if user != "graft+at%3Ahome" || password != "p%25s%2B+%C3%A4"+canary {
		t.Errorf("sent %q and %q, want both encoded as in a form", user, password)
	}
	if _, err := egress.Basic("graft", vault.Secret{}); err == nil {
		t.Error("Basic() takes no secret at all")
	}
}
