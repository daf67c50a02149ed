package server

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/oauth"
)

// Config is every setting of `graft serve`. Its tags are the documentation: flags, environment and help.
type Config struct {
	Database `embed:""`
	Address  `embed:""`
	Egress   `embed:""`
	SignOn   `embed:""`

	OriginsAllow   []string `env:"GRAFT_ORIGINS_ALLOW" help:"Origins of browser clients that may call /mcp; a port may be *. With a loopback origin, http://localhost:* is allowed too."`
	TrustedProxies []string `env:"GRAFT_TRUSTED_PROXIES" help:"Addresses or CIDRs of proxies whose X-Forwarded-For is believed."`

	RateMCP    string `name:"rate-mcp" env:"GRAFT_RATE_MCP" default:"50/s:200" help:"Requests to /mcp, per agent: N/s, N/m, N/s:BURST or off."`
	RateSignIn string `name:"rate-signin" env:"GRAFT_RATE_SIGNIN" default:"10/m" help:"Attempts to sign in, per address; five times as many per account."`
	RateAPI    string `name:"rate-api" env:"GRAFT_RATE_API" default:"20/s" help:"State-changing requests in the console, per user."`
	RateOAuth  string `name:"rate-oauth" env:"GRAFT_RATE_OAUTH" default:"20/s:200" help:"Requests for authorization and tokens, per address. Many people's apps may share one."`
	// Clients of one vendor register from a few addresses, so this is not as low as it looks.
	RateRegister string `name:"rate-register" env:"GRAFT_RATE_REGISTER" default:"60/m" help:"Clients that register, per address."`

	OAuthClients string `name:"oauth-clients" env:"GRAFT_OAUTH_CLIENTS" type:"path" help:"JSON file of client ID metadata documents by their URL, used in place of what is at the URL."`

	OpenAIChallenge string `name:"openai-challenge" env:"GRAFT_OPENAI_CHALLENGE" help:"What /.well-known/openai-apps-challenge answers, by which OpenAI verifies the domain of a listed app."`

	Retention `embed:""`

	MetricsListen string `env:"GRAFT_METRICS_LISTEN" help:"Address to serve /metrics on, apart from everything else. Off when absent."`
}

// Address is where the gateway is: for itself, and for people and clients.
type Address struct {
	Listen string `env:"GRAFT_LISTEN" default:"127.0.0.1:8080" help:"Address to listen on. Loopback only unless you say otherwise."`
	Origin string `env:"GRAFT_ORIGIN" help:"The deployment's own origin, as people and clients type it: scheme, host and port, no path. When absent, http://localhost on the port listened on."`
}

// Retention is how long the audit log is kept: the part of the settings that who verifies it needs too.
type Retention struct {
	AuditKeep int32 `env:"GRAFT_AUDIT_KEEP" default:"400" help:"Days that the audit log is kept, 7 or more; 0 keeps everything."`
}

// Check reports everything that is wrong with r, as a Wrong.
func (r Retention) Check() error {
	var wrong Wrong
	r.check(&wrong)
	return wrong.err()
}

func (r Retention) check(wrong *Wrong) {
	if r.AuditKeep != 0 && r.AuditKeep < 7 {
		wrong.Add("GRAFT_AUDIT_KEEP", "must be a whole number of days, 7 or more, or 0 to keep everything")
	}
}

// Keep is how long that is; 0 is for ever.
func (r Retention) Keep() time.Duration { return time.Duration(r.AuditKeep) * 24 * time.Hour }

// Egress is what may be reached from here: the part of the settings that every command needs that speaks to others.
type Egress struct {
	EgressAllow []string `env:"GRAFT_EGRESS_ALLOW" help:"Networks (CIDRs or addresses) that upstreams may be in although they are not public, over http too. Their own services are then within reach of whoever may add an upstream."`
}

// Check reports everything that is wrong with e, as a Wrong.
func (e Egress) Check() error {
	var wrong Wrong
	e.check(&wrong)
	return wrong.err()
}

func (e Egress) check(wrong *Wrong) {
	if client, err := e.Client(); err != nil {
		wrong.Add("GRAFT_EGRESS_ALLOW", "must be private networks such as 10.1.0.0/16: %v", err)
	} else {
		client.Close()
	}
}

// Client is a way out under these settings.
func (e Egress) Client() (*egress.Client, error) {
	c := egress.Config{}
	for _, text := range e.EgressAllow {
		network, err := parsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is neither an address nor a CIDR", text)
		}
		c.Allow = append(c.Allow, network.Masked())
	}
	return egress.New(c)
}

// Public is the origin, or what it is when it was left out.
func (a Address) Public() string {
	_, port, err := net.SplitHostPort(a.Listen)
	if a.Origin != "" || err != nil {
		return a.Origin
	}
	return "http://localhost:" + port
}

// Database is how to reach the data and open what is sealed in it: the part of the settings that every command needs.
type Database struct {
	DatabaseURL   string `name:"database-url" env:"GRAFT_DATABASE_URL" help:"A Postgres (15 or newer) to use in place of the private one. Then run graft migrate yourself and give a master key."`
	DirectURL     string `name:"database-url-direct" env:"GRAFT_DATABASE_URL_DIRECT" help:"A direct connection to the same database, for LISTEN, where GRAFT_DATABASE_URL goes through a pooler."`
	DatabaseConns int32  `env:"GRAFT_DATABASE_CONNS" default:"16" help:"Most connections to the database."`
	DataDir       string `env:"GRAFT_DATA_DIR" default:"./data" type:"path" help:"Folder of the private Postgres and of the master key it makes."`
	PGBin         string `name:"pg-bin" env:"GRAFT_PG_BIN" type:"path" help:"Folder of the Postgres binaries for the private database. Searched for when absent."`
	MasterKey     string `env:"GRAFT_MASTER_KEY" help:"Master key, base64 of 32 bytes; several, newest first, on a line each. Make one with: graft key new"`
	MasterKeyFile string `env:"GRAFT_MASTER_KEY_FILE" type:"path" help:"File that holds the master key, in place of GRAFT_MASTER_KEY."`
	Log           string `env:"GRAFT_LOG" default:"text" help:"Form of the log on stderr: json or text."`
}

// settings is a Config that was checked, in the types the rest works with.
type settings struct {
	Config
	origin  *url.URL
	host    string // of the origin, with its port where it has one
	allow   []originPattern
	proxies []netip.Prefix
	mcp     rate
	signIn  rate
	account rate // of attempts to sign in to one account
	api     rate

	oauth, register rate
}

// Wrong is the error of settings that are wrong: a line for each, which begins with the name of its variable.
type Wrong []string

// Error is all lines.
func (w Wrong) Error() string { return strings.Join(w, "\n") }

// Add notes one more.
func (w *Wrong) Add(name, format string, args ...any) {
	*w = append(*w, name+" "+fmt.Sprintf(format, args...))
}

// err is w as an error, nil where nothing is wrong.
func (w Wrong) err() error {
	if len(w) == 0 {
		return nil
	}
	return w
}

// Check reports everything that is wrong with c, as a Wrong.
func (c Config) Check() error {
	_, err := c.settle()
	return err
}

func (c Config) settle() (settings, error) {
	s := settings{Config: c}
	var wrong Wrong
	s.origin = c.Address.check(&wrong)
	if s.Origin = c.Public(); s.origin != nil {
		s.host = s.origin.Host
	}
	if c.MetricsListen != "" && !hasPort(c.MetricsListen) {
		wrong.Add("GRAFT_METRICS_LISTEN", "must be host:port, not %q", c.MetricsListen)
	}
	c.Retention.check(&wrong)
	for _, o := range c.OriginsAllow {
		p, err := parseOriginPattern(o)
		if err != nil {
			wrong.Add("GRAFT_ORIGINS_ALLOW", "%v", err)
		}
		s.allow = append(s.allow, p)
	}
	for _, p := range c.TrustedProxies {
		prefix, err := parsePrefix(p)
		if err != nil {
			wrong.Add("GRAFT_TRUSTED_PROXIES", "must be addresses or CIDRs, not %q", p)
		}
		s.proxies = append(s.proxies, prefix)
	}
	for _, r := range []struct {
		name, text string
		into       *rate
	}{
		{"GRAFT_RATE_MCP", c.RateMCP, &s.mcp},
		{"GRAFT_RATE_SIGNIN", c.RateSignIn, &s.signIn},
		{"GRAFT_RATE_API", c.RateAPI, &s.api},
		{"GRAFT_RATE_OAUTH", c.RateOAuth, &s.oauth},
		{"GRAFT_RATE_REGISTER", c.RateRegister, &s.register},
	} {
		var err error
		if *r.into, err = parseRate(r.text); err != nil {
			wrong.Add(r.name, "%v", err)
		}
	}
	if _, err := c.ClientDocuments(); err != nil {
		wrong.Add("GRAFT_OAUTH_CLIENTS", "must be a JSON file of client ID metadata documents by their URL: %v", err)
	}
	if strings.ContainsFunc(c.OpenAIChallenge, func(r rune) bool { return r <= ' ' || r > '~' }) || len(c.OpenAIChallenge) > 512 {
		wrong.Add("GRAFT_OPENAI_CHALLENGE", "must be the token alone, without spaces")
	}
	s.account = rate{perAccount * s.signIn.Requests, s.signIn.Window}
	c.Database.check(&wrong)
	c.Egress.check(&wrong)
	c.SignOn.check(&wrong)
	return s, wrong.err()
}

// ClientDocuments are the client ID metadata documents that the operator gives, by URL. An error names each that is not
// good.
func (c Config) ClientDocuments() (map[string][]byte, error) {
	if c.OAuthClients == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.OAuthClients)
	if err != nil {
		return nil, err
	}
	var raw map[string]jsontext.Value
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("read %s: %w", c.OAuthClients, err)
	}
	documents := make(map[string][]byte, len(raw))
	var bad []string
	for _, url := range slices.Sorted(maps.Keys(raw)) {
		if err := oauth.CheckDocument(url, raw[url]); err != nil {
			bad = append(bad, fmt.Sprintf("%q: %s", url, reason.Of(err).Message))
		}
		documents[url] = raw[url]
	}
	if len(bad) > 0 {
		return nil, errors.New(strings.Join(bad, "; "))
	}
	return documents, nil
}

// Check reports everything that is wrong with a, as a Wrong.
func (a Address) Check() error {
	var wrong Wrong
	a.check(&wrong)
	return wrong.err()
}

// check returns the origin. It is nil where it is wrong, and where it was left out and the port, which it would
// follow from, is wrong: that is one mistake.
func (a Address) check(wrong *Wrong) *url.URL {
	if !hasPort(a.Listen) {
		wrong.Add("GRAFT_LISTEN", "must be host:port, not %q", a.Listen)
		if a.Origin == "" {
			return nil
		}
	}
	origin := a.Public()
	u, err := url.Parse(origin)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		wrong.Add("GRAFT_ORIGIN", "must be http:// or https:// and a host, not %q", origin)
	case u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || strings.ToLower(origin) != origin,
		u.Scheme == "https" && u.Port() == "443", u.Scheme == "http" && u.Port() == "80":
		wrong.Add("GRAFT_ORIGIN", "must be scheme, host and port alone, in lower case, without a slash at the end and without the port that goes without saying, not %q", origin)
	case u.Scheme == "http" && !loopbackHost(u.Hostname()):
		wrong.Add("GRAFT_ORIGIN", "must be https unless its host is loopback, not %q", origin)
	default:
		return u
	}
	return nil
}

func hasPort(listen string) bool {
	_, port, err := net.SplitHostPort(listen)
	return err == nil && port != ""
}

// Check reports everything that is wrong with d, as a Wrong.
func (d Database) Check() error {
	var wrong Wrong
	d.check(&wrong)
	return wrong.err()
}

func (d Database) check(wrong *Wrong) {
	if d.DatabaseConns < 2 {
		wrong.Add("GRAFT_DATABASE_CONNS", "must be a whole number, 2 or more")
	}
	if d.MasterKey != "" && d.MasterKeyFile != "" {
		wrong.Add("GRAFT_MASTER_KEY", "and GRAFT_MASTER_KEY_FILE are both set; give one")
	}
	if d.DatabaseURL != "" && d.MasterKey == "" && d.MasterKeyFile == "" {
		wrong.Add("GRAFT_MASTER_KEY", "or GRAFT_MASTER_KEY_FILE must be set with GRAFT_DATABASE_URL; make one with: graft key new")
	}
	if d.Log != "json" && d.Log != "text" {
		wrong.Add("GRAFT_LOG", "must be json or text, not %q", d.Log)
	}
}

func parsePrefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.ParsePrefix(s)
}

// loopbackHost reports whether a host name or literal is this machine.
func loopbackHost(h string) bool {
	if h == "localhost" || strings.HasSuffix(h, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(h)
	return err == nil && a.IsLoopback()
}
