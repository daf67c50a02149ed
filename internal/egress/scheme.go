package egress

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/vault"
)

// A Scheme is one way in which vendors want to be shown a credential. The table of them is what the form, its validation, the
// documentation and the description of request_connection are drawn from.
type Scheme struct {
	Name    string  // "bearer": stored, and what request_connection takes
	Title   string  // "Bearer token"
	About   string  // one sentence, for people and agents
	Config  []Field // not secret: an agent may propose it
	Secrets []Field // what a person types, once

	// check refuses config whose fields are each right and do not go together; nil is nothing to refuse.
	check func(config map[string]string) error
	// vet refuses what was typed where a field's own rules do not; nil is nothing to refuse.
	vet func(fields map[string]string) error
	// inject makes the injection; open hands out what was typed, by the name of its field.
	inject func(c Credential) (Injection, error)
}

// A Field is one thing that a scheme has to know.
type Field struct {
	Name     string // "headerName"
	Label    string // "Header"
	Help     string // a sentence; "" where the label says it
	Example  string
	Optional bool
	Long     bool     // several lines: a key in PEM
	Spaces   bool     // spaces at its ends are part of it: a password
	Text     bool     // characters beyond ASCII may be in it
	Options  []string // it is one of these; the first is the default of an optional one

	// check refuses a value; nil takes any.
	check func(value string) error
}

// A Credential is what is kept of a connection, as a scheme injects it.
type Credential struct {
	Key    string // connection and version: what a derived token is remembered under
	Config map[string]string
	Secret vault.Secret // as NewCredential made it
}

// schemes is the table, in the order that people are shown it in.
var schemes = []Scheme{schemeBearer, schemeAPIKeyHeader, schemeAPIKeyQuery, schemeBasic, schemeNone}

// Schemes lists the schemes, in the order they are shown in.
func Schemes() []Scheme { return slices.Clone(schemes) }

// SchemeNamed is the scheme of that name. Its refusal lists the names.
func SchemeNamed(name string) (Scheme, error) {
	for _, s := range schemes {
		if s.Name == name {
			return s, nil
		}
	}
	names := make([]string, len(schemes))
	for i, s := range schemes {
		names[i] = s.Name
	}
	return Scheme{}, reason.Refuse(reason.InputInvalid, "The scheme is none of %s.", strings.Join(names, ", ")).Field("scheme")
}

// CheckConfig is config as it is kept: without spaces at its ends, and with defaults in their place. What the scheme does not know, or
// wants and is not given, is a *reason.Refusal of the field "schemeConfig.<name>".
func (s Scheme) CheckConfig(config map[string]string) (map[string]string, error) {
	kept := map[string]string{}
	for name := range config {
		if !slices.ContainsFunc(s.Config, func(f Field) bool { return f.Name == name }) {
			return nil, reason.Refuse(reason.InputInvalid, "The scheme %s has no %.40q. It takes %s.", s.Name, name, named(s.Config)).Field("schemeConfig")
		}
	}
	for _, f := range s.Config {
		value := strings.TrimSpace(config[f.Name])
		refusal := f.refuse(value)
		switch {
		case value == "" && f.Optional:
			if len(f.Options) > 0 {
				kept[f.Name] = f.Options[0]
			}
			continue
		case refusal != nil:
			return nil, reason.Of(refusal).Field("schemeConfig." + f.Name)
		}
		kept[f.Name] = value
	}
	if s.check != nil {
		if err := s.check(kept); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

func named(fields []Field) string {
	if len(fields) == 0 {
		return "nothing"
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}

// maxField bounds one field, in bytes: a private key with its certificates is shorter.
const maxField = 16 << 10

// refuse says what is wrong with a value, without repeating it.
func (f Field) refuse(value string) error {
	switch {
	case value == "" && f.Optional:
		return nil
	case value == "":
		return reason.Refuse(reason.InputInvalid, "%s is missing.", f.Label)
	case len(value) > maxField:
		return reason.Refuse(reason.InputInvalid, "%s is longer than %d characters. Is it the right one?", f.Label, maxField)
	case len(f.Options) > 0 && !slices.Contains(f.Options, value):
		return reason.Refuse(reason.InputInvalid, "%s is none of %s.", f.Label, strings.Join(f.Options, ", "))
	case f.check != nil:
		return f.check(value)
	}
	return nil
}

// NewCredential makes one secret of what a person typed, by the names of the fields. What is pasted along with a key is taken off: white
// space at its ends, a byte order mark, "Bearer ". An error is a *reason.Refusal of the field "secret_<name>", which repeats nothing.
func (s Scheme) NewCredential(fields map[string]string) (vault.Secret, error) {
	kept := map[string]string{}
	for _, f := range s.Secrets {
		value, err := f.pasted(fields[f.Name])
		if err == nil {
			err = f.refuse(value)
		}
		if err != nil {
			return vault.Secret{}, reason.Of(err).Field("secret_" + f.Name)
		}
		kept[f.Name] = value
	}
	if s.vet != nil {
		if err := s.vet(kept); err != nil {
			return vault.Secret{}, err
		}
	}
	if len(s.Secrets) == 0 {
		return vault.Secret{}, nil
	}
	plain, err := json.Marshal(kept, json.Deterministic(true))
	if err != nil { // of text that is not UTF-8, which pasted refuses
		return vault.Secret{}, reason.Refuse(reason.InputInvalid, "The credential is not text.").Field("secret_" + s.Secrets[0].Name)
	}
	defer clear(plain)
	return vault.NewSecret(plain), nil
}

// Inject makes the injection of a connection's credential. One that lacks a field is credential_incomplete.
func (s Scheme) Inject(c Credential) (Injection, error) {
	if len(s.Secrets) > 0 && c.Secret.IsZero() {
		return Injection{}, incomplete()
	}
	return s.inject(c)
}

func incomplete() *reason.Refusal {
	return reason.Refuse(reason.CredentialIncomplete, "The connection's credential lacks a part. A person enters it again.")
}

// field opens one field of a credential for use.
func (c Credential) field(out *outgoing, name string, use func(value []byte) error) error {
	return c.Secret.Reveal(func(plain []byte) error {
		var fields map[string]string
		if err := json.Unmarshal(plain, &fields); err != nil {
			return incomplete() // not err, which may repeat it
		}
		value, ok := fields[name]
		if !ok {
			return incomplete()
		}
		out.hide(vault.NewSecret([]byte(value)))
		return use([]byte(value))
	})
}
