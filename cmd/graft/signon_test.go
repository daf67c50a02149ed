package main_test

import (
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/oidc/oidctest"
)

// doctor asks the provider, and tells what it has to know; a setting that is wrong stops the start.
func TestDoctorAsksTheProvider(t *testing.T) {
	t.Parallel()
	h, op := newHome(t), oidctest.Start(t)
	set := []string{"GRAFT_ORIGIN=https://graft.example.org", "GRAFT_OIDC_CLIENT_ID=graft", "GRAFT_OIDC_CLIENT_SECRET=CANARY", "GRAFT_OIDC_ISSUER="}
	doctor := func(issuer string) outcome {
		set[3] = "GRAFT_OIDC_ISSUER=" + issuer
		o := h.run(append(set, "doctor")...)
		if strings.Contains(o.out+o.errout, "CANARY") {
			t.Errorf("doctor says the client's secret:\n%s%s", o.out, o.errout)
		}
		return o
	}
	if o := doctor(op.URL); o.code != 0 || !strings.Contains(o.out, op.URL+" answers; it must know https://graft.example.org/sign-in/oidc/callback") {
		t.Errorf("doctor with a provider = exit %d\n%s", o.code, o.out)
	}
	if o := doctor("http://127.0.0.1:1"); o.code != 1 || !strings.Contains(o.out, "refused the connection") || !strings.Contains(o.out, "Look at GRAFT_OIDC_ISSUER") {
		t.Errorf("doctor without it = exit %d\n%s", o.code, o.out)
	}
	if o := doctor(op.URL + "/other"); o.code != 1 || !strings.Contains(o.out, "status 404") {
		t.Errorf("doctor with another issuer = exit %d\n%s", o.code, o.out)
	}
	if o := doctor("nowhere"); o.code != 1 || !strings.Contains(o.out, "GRAFT_OIDC_ISSUER must") || !strings.Contains(o.out, "the settings are wrong") {
		t.Errorf("doctor with a wrong setting = exit %d\n%s", o.code, o.out)
	}
	if o := h.run("GRAFT_OIDC_CLIENT_ID=graft", "serve"); o.code != 2 || !strings.Contains(o.errout, "GRAFT_OIDC_ISSUER must") {
		t.Errorf("serve with half of the settings = %+v", o)
	}
	if o := h.run("doctor"); !strings.Contains(o.out, "not used: GRAFT_OIDC_ISSUER is not set") {
		t.Errorf("doctor without the settings:\n%s", o.out)
	}
	h.nothingLeft("doctor")
}
