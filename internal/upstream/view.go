package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
)

// A view is what serving an organisation's upstreams takes.
type view struct {
	tools        []catalog.Tool
	byConnection map[store.ConnectionID]*target
	byID         map[store.UpstreamID]*target
}

// A target is an upstream as it is reached. It does not change: another one takes its place.
type target struct {
	store.Upstream
	revision string // of all that a session is opened with
	dial     Dial
	refusal  error // why it is not connected to: its own settings; nil as a rule
	tools    []RemoteTool
}

// view is read once, and kept until the bus says that it moved.
func (s *Source) view(ctx context.Context, c store.Caller) (*view, error) {
	return s.views.Get(ctx, c.Org, func(ctx context.Context) (*view, error) { return s.read(ctx, c) })
}

func (s *Source) read(ctx context.Context, c store.Caller) (*view, error) {
	var rows store.UpstreamView
	err := s.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		rows, err = tx.UpstreamView(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read upstreams: %w", err)
	}
	v := &view{byConnection: map[store.ConnectionID]*target{}, byID: map[store.UpstreamID]*target{}}
	if len(rows.Upstreams) == 0 {
		return v, nil
	}
	key, err := s.c.Keys.Key(ctx, c.Org.String())
	if err != nil {
		return nil, err
	}
	secrets, err := openSecrets(key, c.Org, rows.Secrets)
	if err != nil {
		return nil, err
	}
	for _, u := range rows.Upstreams {
		t, err := s.target(key, c.Org, u, rows, secrets)
		if err != nil {
			return nil, err
		}
		v.byConnection[u.Connection], v.byID[u.ID] = t, t
	}
	for _, row := range rows.Tools {
		t := v.byID[row.UpstreamID]
		v.tools = append(v.tools, tool(t.Upstream, row))
		t.tools = append(t.tools, RemoteTool{Name: row.Original, InputSchema: row.InputSchema})
	}
	return v, nil
}

func openSecrets(key *vault.DataKey, org store.OrgID, rows []store.Sealed) (map[string]vault.Secret, error) {
	secrets := map[string]vault.Secret{}
	for _, row := range rows {
		secret, err := key.Open(secretPlace(org, row.Secret), row.Value)
		if err != nil {
			return nil, fmt.Errorf("open secret %s: %w", row.Name, err)
		}
		secrets[row.Name] = secret
	}
	return secrets, nil
}

func secretPlace(org store.OrgID, id store.SecretID) vault.Place {
	return vault.Place{Org: org.String(), Table: "secret", Row: id.String(), Column: "value"}
}

func headerPlace(org store.OrgID, id store.UpstreamID, name string) vault.Place {
	return vault.Place{Org: org.String(), Table: "upstream_header", Row: id.String() + " " + name, Column: "template"}
}

// target puts together how an upstream is reached.
func (s *Source) target(key *vault.DataKey, org store.OrgID, u store.Upstream, rows store.UpstreamView, secrets map[string]vault.Secret) (*target, error) {
	t := &target{Upstream: u}
	hash := sha256.New()
	_, _ = fmt.Fprintf(hash, "%s %d %d\n", u.URL, u.ConnectSeconds, u.CallSeconds)
	t.dial = Dial{
		URL: u.URL, Client: s.c.Client, Version: s.c.Version, Log: s.c.Log,
		ConnectTimeout: time.Duration(u.ConnectSeconds) * time.Second, CallTimeout: time.Duration(u.CallSeconds) * time.Second,
	}
	var err error
	if t.dial.Hosts, err = hostsOf(u.URL); err != nil {
		return nil, fmt.Errorf("upstream %s: %w", u.ID, err)
	}
	used := map[string]bool{}
	for _, row := range rows.Headers {
		if row.Upstream != u.ID {
			continue
		}
		template, err := key.Open(headerPlace(org, u.ID, row.Name), row.Value)
		if err != nil {
			return nil, fmt.Errorf("open header of upstream %s: %w", u.ID, err)
		}
		for _, name := range row.Secrets {
			used[name] = true
		}
		_, _ = fmt.Fprintf(hash, "%s %x\n", row.Name, row.Value)
		in, err := egress.Template(row.Name, template, secrets)
		if err != nil {
			t.refusal = mend(u, err)
			continue
		}
		t.dial.Header = append(t.dial.Header, in)
	}
	for _, row := range rows.Secrets {
		if used[row.Name] {
			_, _ = fmt.Fprintf(hash, "%s %x\n", row.Name, row.Value)
		}
	}
	t.revision = hex.EncodeToString(hash.Sum(nil))
	return t, nil
}

// mend is the refusal of an upstream whose headers cannot be made.
func mend(u store.Upstream, err error) error {
	refusal := reason.Of(err)
	sentence := refusal.Message
	if name, ok := refusal.Details["secret"].(string); ok {
		sentence = fmt.Sprintf("It needs the secret %s, which is not set. A person sets it on the Upstreams page, or with: graft secret set --name %s", name, name)
	}
	r := reason.Refuse(refusal.Word, "%s is not connected to. %s", u.Name, sentence)
	r.Details = refusal.Details
	return r.With("upstream", u.Name)
}

// hostsOf is the set of the one host that a URL leads to.
func hostsOf(address string) (egress.Hosts, error) {
	u, err := url.Parse(address)
	if err != nil {
		// Not err, which repeats the address.
		return egress.Hosts{}, reason.Refuse(reason.InputInvalid, "The address cannot be read. It is like https://mcp.example.com/mcp.").Field("url")
	}
	if u.User != nil {
		return egress.Hosts{}, reason.Refuse(reason.InputInvalid, "A user name or password in the address is not sent. Use a header.").Field("url")
	}
	hosts, err := egress.ParseHosts(u.Scheme + "://" + u.Host)
	if err != nil {
		return egress.Hosts{}, reason.Of(err).Field("url")
	}
	return hosts, nil
}

// tool is a row of what an upstream lists as the catalogue knows it.
func tool(u store.Upstream, row store.UpstreamTool) catalog.Tool {
	h := readHints(row.Annotations)
	readOnly := u.TrustHints && h.ReadOnly != nil && *h.ReadOnly
	t := catalog.Tool{
		Vendor: u.Name, Name: row.Name, Title: row.Title, Description: row.Description,
		InputSchema: row.InputSchema, OutputSchema: row.OutputSchema, Annotations: row.Annotations,
		Kind: catalog.KindUpstream, Version: int(row.Version), Original: row.Original, Connection: u.Connection,
		ReadOnly:    readOnly,
		Destructive: !readOnly && !(u.TrustHints && h.Destructive != nil && !*h.Destructive),
		Idempotent:  u.TrustHints && h.Idempotent != nil && *h.Idempotent,
		Stale:       u.State == store.UpstreamFailing,
		Timeout:     time.Duration(u.ConnectSeconds+u.CallSeconds) * time.Second,
	}
	if row.Override != "" {
		t.Description = row.Override
	}
	if t.Title == "" {
		t.Title = h.Title
	}
	if t.Title == "" {
		t.Title = row.Original
	}
	return t
}

// hints are what an upstream says of a tool's effects.
type hints struct {
	Title       string `json:"title"`
	ReadOnly    *bool  `json:"readOnlyHint"`
	Destructive *bool  `json:"destructiveHint"`
	Idempotent  *bool  `json:"idempotentHint"`
}

func readHints(annotations jsontext.Value) (h hints) {
	if json.Unmarshal(annotations, &h) != nil {
		return hints{} // what cannot be read says nothing
	}
	return h
}
