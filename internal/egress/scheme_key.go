package egress

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/vault"
)

var schemeNone = Scheme{
	Name: "none", Title: "No credential", About: "The API is public: nothing is sent along.",
	inject: func(Credential) (Injection, error) { return Injection{}, nil },
}

var schemeBearer = Scheme{
	Name: "bearer", Title: "Bearer token", About: "A token in the header Authorization, after Bearer.",
	Secrets: []Field{{Name: "token", Label: "Token"}},
	inject:  func(c Credential) (Injection, error) { return headerOf(c, "token", "Authorization", "Bearer ") },
}

var schemeAPIKeyHeader = Scheme{
	Name: "api_key_header", Title: "API key in a header", About: "A key in a header of the vendor's choice.",
	Config: []Field{
		{Name: "headerName", Label: "Header", Example: "X-Api-Key", check: checkKeyHeader},
		{Name: "prefix", Label: "Before the key", Help: "A word and a space that stand before the key, such as Token.", Optional: true, check: checkPrefix},
	},
	Secrets: []Field{{Name: "apiKey", Label: "API key"}},
	check: func(config map[string]string) error {
		if http.CanonicalHeaderKey(config["headerName"]) == "Authorization" && config["prefix"] == "" {
			return reason.Refuse(reason.InputInvalid, "In Authorization a word stands before the key, such as Token. For Bearer choose the scheme bearer.").Field("schemeConfig.prefix")
		}
		return nil
	},
	inject: func(c Credential) (Injection, error) {
		prefix := c.Config["prefix"]
		if prefix != "" {
			prefix += " "
		}
		return headerOf(c, "apiKey", c.Config["headerName"], prefix)
	},
}

func checkKeyHeader(name string) error {
	_, err := injectable(name)
	return err
}

func checkPrefix(prefix string) error {
	if !httpguts.ValidHeaderFieldValue(prefix) || strings.ContainsFunc(prefix, func(r rune) bool { return r >= 0x7f }) {
		return reason.Refuse(reason.InputInvalid, "What stands before the key has a character that no header may carry.")
	}
	return nil
}

// headerOf injects one field as a header.
func headerOf(c Credential, field, name, prefix string) (Injection, error) {
	canonical, err := injectable(name)
	if err != nil {
		return Injection{}, err
	}
	return Injection{apply: func(out *outgoing) error {
		return c.field(out, field, func(value []byte) error { return set(out.header, canonical, prefix+string(value)) })
	}}, nil
}

var schemeAPIKeyQuery = Scheme{
	Name: "api_key_query", Title: "API key in the address", About: "A key as a parameter of the address's query.",
	Config: []Field{{Name: "queryParam", Label: "Parameter", Example: "api_key", check: func(name string) error {
		if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("&=#+%", r) }) {
			return reason.Refuse(reason.InputInvalid, "The parameter is a word of letters, digits, dots, hyphens or underscores.")
		}
		return nil
	}}},
	Secrets: []Field{{Name: "apiKey", Label: "API key"}},
	inject: func(c Credential) (Injection, error) {
		name := c.Config["queryParam"]
		return Injection{apply: func(out *outgoing) error {
			return c.field(out, "apiKey", func(value []byte) error {
				out.url.RawQuery = setParam(out.url.RawQuery, name, string(value))
				return nil
			})
		}}, nil
	},
}

// setParam sets one parameter of a query in place of the caller's own of that name, and leaves the others as they are spelled.
func setParam(query, name, value string) string {
	parts := strings.Split(query, "&")
	parts = slices.DeleteFunc(parts, func(part string) bool {
		key, _, _ := strings.Cut(part, "=")
		plain, err := url.QueryUnescape(key)
		return part == "" || key == name || err == nil && plain == name
	})
	return strings.Join(append(parts, url.QueryEscape(name)+"="+url.QueryEscape(value)), "&")
}

var schemeBasic = Scheme{
	Name: "basic", Title: "User and password", About: "HTTP Basic: a user name and a password, or an API key as one of the two (RFC 7617).",
	Secrets: []Field{
		{Name: "username", Label: "User name", Optional: true, Text: true, check: func(name string) error {
			if strings.Contains(name, ":") {
				return reason.Refuse(reason.InputInvalid, "A user name has no colon here: the other side would take what follows it for the password.")
			}
			return nil
		}},
		{Name: "password", Label: "Password", Optional: true, Spaces: true, Text: true},
	},
	vet: func(fields map[string]string) error {
		if fields["username"] == "" && fields["password"] == "" {
			return reason.Refuse(reason.InputInvalid, "Enter a user name, a password or both.").Field("secret_username")
		}
		return nil
	},
	inject: func(c Credential) (Injection, error) {
		return Injection{apply: func(out *outgoing) error {
			return c.field(out, "username", func(user []byte) error {
				return c.field(out, "password", func(password []byte) error {
					both := base64.StdEncoding.EncodeToString(slices.Concat(user, []byte(":"), password))
					out.hide(vault.NewSecret([]byte(both)))
					return set(out.header, "Authorization", "Basic "+both)
				})
			})
		}}, nil
	},
}
