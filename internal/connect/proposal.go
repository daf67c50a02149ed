package connect

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// A Proposal is a connection to be, as an agent asks for it and a person may change it. It holds no secret.
type Proposal struct {
	Vendor      string            `json:"vendor"`
	DisplayName string            `json:"displayName"`
	Scheme      string            `json:"scheme"`
	Config      map[string]string `json:"schemeConfig"`
	PrimaryHost string            `json:"primaryHost"` // an origin, with the path that its requests begin with
	Hosts       []string          `json:"hosts"`       // where else they may go
	DocsURL     string            `json:"docsUrl,omitzero"`
}

const (
	maxHosts   = 20
	maxDocsURL = 2048
)

// Check is the proposal as it is kept: its hosts in their canonical spelling, the primary one not repeated. An error is a
// *reason.Refusal that names the field.
func (p Proposal) Check() (Proposal, error) {
	if err := catalog.CheckVendor(p.Vendor); err != nil {
		return Proposal{}, reason.Of(err).Field("vendor")
	}
	p.DisplayName = cmp.Or(strings.TrimSpace(p.DisplayName), p.Vendor)
	if err := store.CheckName("displayName", p.DisplayName, 120); err != nil {
		return Proposal{}, err
	}
	scheme, err := egress.SchemeNamed(p.Scheme)
	if err != nil {
		return Proposal{}, err
	}
	if p.Config, err = scheme.CheckConfig(p.Config); err != nil {
		return Proposal{}, err
	}
	primary, err := host("primaryHost", p.PrimaryHost)
	if err != nil {
		return Proposal{}, err
	}
	p.PrimaryHost = primary
	others := []string{}
	for _, entry := range p.Hosts {
		h, err := host("hosts", entry)
		if err != nil {
			return Proposal{}, err
		}
		if h != primary && !slices.Contains(others, h) {
			others = append(others, h)
		}
	}
	slices.Sort(others)
	if p.Hosts = others; len(others) >= maxHosts {
		return Proposal{}, reason.Refuse(reason.InputInvalid, "A connection has at most %d hosts.", maxHosts).Field("hosts")
	}
	return p, checkDocs(p.DocsURL)
}

// host is one entry of a connection's hosts, in its canonical spelling. Whether its name leads to a public address is seen when it is
// dialled.
func host(field, entry string) (string, error) {
	if strings.TrimSpace(entry) == "" {
		return "", reason.Refuse(reason.InputInvalid, "Give the host of the vendor's API, such as https://api.example.com.").Field(field)
	}
	set, err := egress.ParseHosts(strings.TrimSpace(entry))
	if err != nil {
		return "", reason.Of(err).Field(field)
	}
	return set.Strings()[0], nil
}

func checkDocs(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(address) > maxDocsURL {
		return reason.Refuse(reason.InputInvalid, "The address of the documentation is not one that a browser opens.").Field("docsUrl")
	}
	return nil
}

// all are the hosts, the primary one first, as a connection keeps them.
func (p Proposal) all() []string { return append([]string{p.PrimaryHost}, p.Hosts...) }

// key is the same for what one answer would settle.
func (p Proposal) key(agent store.AgentID) ([]byte, error) {
	text, err := json.Marshal([]any{p.Vendor, p.Scheme, p.Config, p.PrimaryHost, p.Hosts}, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("name proposal: %w", err)
	}
	return keyOf(store.AskConnection, agent, text), nil
}

func keyOf(topic store.AskTopic, agent store.AgentID, of []byte) []byte {
	h := sha256.New()
	id := agent.Bytes()
	_, _ = h.Write(append([]byte(topic), id[:]...))
	_, _ = h.Write(of)
	return h.Sum(nil)
}
