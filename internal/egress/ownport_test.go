package egress_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
)

func TestOwnPortRefusesOtherPortsOutsideExemptNetworks(t *testing.T) {
	t.Parallel()
	resolver := serveDNS(t, map[string]zone{"public.test": always("93.184.216.34", "2606:2800:220:1::1")})
	plain := newClient(t, egress.Config{Resolver: resolver})
	exempting := newClient(t, egress.Config{Resolver: resolver, Allow: loopback})
	ended, cancel := context.WithCancel(t.Context())
	cancel() // what the policy lets pass ends here, before it is dialled
	for _, call := range []struct {
		client  *egress.Client
		base    string
		ownPort bool
		want    reason.Word
	}{
		{plain, "https://93.184.216.34:22", true, reason.InputInvalid},
		{plain, "https://93.184.216.34:22", false, reason.Cancelled},
		{plain, "https://93.184.216.34:443", true, reason.Cancelled},
		{plain, "https://public.test:8443", true, reason.InputInvalid},
		{plain, "https://public.test:8443", false, reason.Cancelled},
		{plain, "https://public.test", true, reason.Cancelled},
		{exempting, "https://[2606:2800:220:1::1]:22", true, reason.InputInvalid},
	} {
		var seen dials
		_, err := call.client.Do(seen.watch(ended), egress.Request{URL: call.base + "/", Hosts: hostsOf(t, call.base), OwnPort: call.ownPort})
		assertRefused(t, call.base, err, call.want)
		if tried, _ := seen.get(); len(tried) > 0 {
			t.Errorf("%s: tried %v, want none", call.base, tried)
		}
	}
	// Where a network is exempt a name may lead there, so the dialer decides.
	var seen dials
	_, err := exempting.Do(seen.watch(t.Context()), egress.Request{URL: "https://public.test:8443/", Hosts: hostsOf(t, "public.test:8443"), OwnPort: true})
	assertRefused(t, "a public name at another port", err, reason.InputInvalid)
	if tried, connected := seen.get(); len(tried) == 0 || len(connected) > 0 {
		t.Errorf("tried %v and connected to %v, want the dialer to refuse", tried, connected)
	}
}

func TestOwnPortLeavesExemptNetworksTheirPorts(t *testing.T) {
	t.Parallel()
	c, base := startVendor(t, egress.Limits{}, func(http.ResponseWriter, *http.Request) {})
	resp, err := c.Do(t.Context(), egress.Request{URL: base, Hosts: hostsOf(t, base), OwnPort: true})
	if err != nil || resp.Status != http.StatusOK {
		t.Errorf("Do = %+v, %v, want 200", resp, err)
	}
}

// A connection that was made without the rule is not used under it.
func TestOwnPortHasConnectionsOfItsOwn(t *testing.T) {
	t.Parallel()
	c, base := startVendor(t, egress.Limits{}, func(http.ResponseWriter, *http.Request) {})
	var seen dials
	for _, ownPort := range []bool{false, true, false, true} {
		if _, err := c.Do(seen.watch(t.Context()), egress.Request{URL: base, Hosts: hostsOf(t, base), OwnPort: ownPort}); err != nil {
			t.Fatal(err)
		}
	}
	if _, connected := seen.get(); len(connected) != 2 {
		t.Errorf("connected %d times, want once for each rule", len(connected))
	}
}
