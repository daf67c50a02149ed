package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/getgraft/graft/internal/e2e"
)

// closed answers every request as a gateway answers one without a bearer.
func closed(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/mcp"
}

func TestStartRelaysLines(t *testing.T) {
	t.Parallel()
	var answer struct {
		Error string
		Code  int
	}
	e2e.NewProgram(t, e2e.Client(t, "sdk-v1.mjs")).Start(closed(t)).Next(&answer)
	if answer.Error == "" || answer.Code != http.StatusUnauthorized {
		t.Errorf("connect = %+v, want an error with code 401", answer)
	}
}

func TestRunReturnsTheExitCode(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := e2e.NewProgram(t, e2e.Script(t, "mcp-inspector")).Run(
		"--cli", closed(t), "--transport", "http", "--stored-auth-only", "--method", "tools/list")
	if code != 3 { // "auth required"
		t.Errorf("Run() = exit %d, want 3\n%s%s", code, stdout, stderr)
	}
}
