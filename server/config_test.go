package server_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/getgraft/graft/server"
)

func fine() server.Config {
	return server.Config{
		Database: server.Database{DatabaseConns: 16, Log: "text"},
		Address:  server.Address{Listen: "127.0.0.1:8080"}, RateMCP: "50/s:200", RateSignIn: "10/m", RateAPI: "20/s", RateOAuth: "20/s:200", RateRegister: "60/m",
	}
}

func TestConfigReportsEveryProblemByName(t *testing.T) {
	t.Parallel()
	if err := fine().Check(); err != nil {
		t.Fatalf("the presets = %v", err)
	}
	c := server.Config{
		Database: server.Database{DatabaseConns: 1, Log: "xml", DatabaseURL: "postgres://x"},
		Address:  server.Address{Listen: "8080", Origin: "https://host/path"}, OriginsAllow: []string{"inspector"}, TrustedProxies: []string{"10.0.0.0/99"},
		RateMCP: "many", RateSignIn: "0/s", RateAPI: "20/h", RateOAuth: "20/s", RateRegister: "60/m", MetricsListen: "x",
	}
	err := c.Check()
	if err == nil {
		t.Fatal("a configuration with everything wrong passes")
	}
	for _, name := range []string{
		"GRAFT_LISTEN", "GRAFT_ORIGIN", "GRAFT_ORIGINS_ALLOW", "GRAFT_TRUSTED_PROXIES", "GRAFT_RATE_MCP", "GRAFT_RATE_SIGNIN",
		"GRAFT_RATE_API", "GRAFT_METRICS_LISTEN", "GRAFT_DATABASE_CONNS", "GRAFT_LOG", "GRAFT_MASTER_KEY",
	} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named in:\n%v", name, err)
		}
	}
}

// An origin that was left out follows from the address: a wrong address is one mistake.
func TestConfigReportsNoDerivedOrigin(t *testing.T) {
	t.Parallel()
	c := fine()
	c.Listen = "nowhere"
	for _, err := range []error{c.Check(), c.Address.Check()} {
		var wrong server.Wrong
		if !errors.As(err, &wrong) || len(wrong) != 1 || !strings.HasPrefix(wrong[0], "GRAFT_LISTEN must be ") {
			t.Errorf("Check() = %q, want GRAFT_LISTEN alone", wrong)
		}
	}
	c.Origin = "http://graft.example"
	var wrong server.Wrong
	if err := c.Check(); !errors.As(err, &wrong) || len(wrong) != 2 {
		t.Errorf("Check() with an origin that is wrong for itself = %v, want both", err)
	}
}

func TestConfigOneByOne(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		change func(*server.Config)
		wrong  string // "" is fine
	}{
		"https origin":              {func(c *server.Config) { c.Origin = "https://graft.example" }, ""},
		"https origin with a port":  {func(c *server.Config) { c.Origin = "https://graft.example:8443" }, ""},
		"http origin on loopback":   {func(c *server.Config) { c.Origin = "http://127.0.0.1:9000" }, ""},
		"http origin on IPv6":       {func(c *server.Config) { c.Origin = "http://[::1]:9000" }, ""},
		"http origin elsewhere":     {func(c *server.Config) { c.Origin = "http://graft.example" }, "GRAFT_ORIGIN"},
		"origin with a slash":       {func(c *server.Config) { c.Origin = "https://graft.example/" }, "GRAFT_ORIGIN"},
		"origin in capitals":        {func(c *server.Config) { c.Origin = "https://Graft.example" }, "GRAFT_ORIGIN"},
		"origin with a user":        {func(c *server.Config) { c.Origin = "https://a@graft.example" }, "GRAFT_ORIGIN"},
		"origin of another scheme":  {func(c *server.Config) { c.Origin = "ftp://graft.example" }, "GRAFT_ORIGIN"},
		"rate off":                  {func(c *server.Config) { c.RateMCP = "off" }, ""},
		"rate below its burst":      {func(c *server.Config) { c.RateMCP = "50/s:10" }, "GRAFT_RATE_MCP"},
		"negative rate":             {func(c *server.Config) { c.RateAPI = "-1/s" }, "GRAFT_RATE_API"},
		"proxy as an address":       {func(c *server.Config) { c.TrustedProxies = []string{"10.0.0.1", "fd00::/8"} }, ""},
		"two master keys":           {func(c *server.Config) { c.MasterKey, c.MasterKeyFile = "a", "b" }, "GRAFT_MASTER_KEY_FILE"},
		"a real database with keys": {func(c *server.Config) { c.DatabaseURL, c.MasterKey = "postgres://x", "a" }, ""},
		"listen on every address":   {func(c *server.Config) { c.Listen = ":8080" }, ""},
	} {
		c := fine()
		x.change(&c)
		err := c.Check()
		if (err == nil) != (x.wrong == "") || err != nil && !strings.Contains(err.Error(), x.wrong) {
			t.Errorf("%s: Check = %v, want %q named", name, err, x.wrong)
		}
	}
}

func TestClientDocumentsAreReadAndEachBadOneIsNamed(t *testing.T) {
	t.Parallel()
	file := func(text string) server.Config {
		c := fine()
		c.OAuthClients = filepath.Join(t.TempDir(), "clients.json")
		if err := os.WriteFile(c.OAuthClients, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return c
	}
	const app = `{"client_id": "https://app.example/client", "client_name": "App", "redirect_uris": ["http://localhost/callback"]}`
	c := file(`{"https://app.example/client": ` + app + `}`)
	if err := c.Check(); err != nil {
		t.Errorf("Check with a good document = %v", err)
	}
	documents, err := c.ClientDocuments()
	if got := string(documents["https://app.example/client"]); err != nil || len(documents) != 1 || got != app {
		t.Errorf("ClientDocuments = %q, %v, want the one of the file", documents, err)
	}
	for text, named := range map[string][]string{
		`[]`: {"clients.json"},
		`{"https://twice.example/client": {}, "https://twice.example/client": {}}`: {"clients.json", "https://twice.example/client"},
		`{"https://app.example/client": ` + app + `, "https://b.example/client": ` + app + `, "http://c.example/client": {}}`: {
			`"https://b.example/client"`, "client_id is not exactly", `"http://c.example/client"`, "does not begin with https://",
		},
	} {
		err := file(text).Check()
		for _, name := range append(named, "GRAFT_OAUTH_CLIENTS") {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("Check with %s = %v, want %s named", text, err, name)
			}
		}
		if err != nil && strings.Contains(err.Error(), `"https://app.example/client"`) {
			t.Errorf("Check with %s = %v, which names the good one", text, err)
		}
	}
	absent := fine()
	absent.OAuthClients = filepath.Join(t.TempDir(), "absent.json")
	if err := absent.Check(); err == nil || !strings.Contains(err.Error(), "GRAFT_OAUTH_CLIENTS") {
		t.Errorf("Check without the file = %v, want GRAFT_OAUTH_CLIENTS named", err)
	}
	if documents, err := fine().ClientDocuments(); documents != nil || err != nil {
		t.Errorf("ClientDocuments without the setting = %q, %v, want none", documents, err)
	}
}
