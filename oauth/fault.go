package oauth

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// A Fault is an error as the protocol has it (RFC 6749 §4.1.2.1 and §5.2): a code that clients branch on, and a sentence
// for the developer of one. At the authorization endpoint it travels in a redirect, elsewhere it is the answer.
type Fault struct {
	Status      int // where it is the whole answer
	Code        string
	Description string
	// Basic is true where the client tried HTTP Basic, which is answered with a challenge of that scheme.
	Basic bool
}

// Error implements error.
func (f Fault) Error() string { return f.Code + ": " + f.Description }

func badRequest(code, format string, args ...any) Fault {
	return Fault{Status: http.StatusBadRequest, Code: code, Description: fmt.Sprintf(format, args...)}
}

// invalidRequest: a parameter is missing, malformed, or there twice.
func invalidRequest(format string, args ...any) Fault {
	return badRequest("invalid_request", format, args...)
}

// invalidGrant: a code or refresh token is not, or no longer, good for this client. Clients throw their tokens away on it.
func invalidGrant(format string, args ...any) Fault {
	return badRequest("invalid_grant", format, args...)
}

// invalidScope: the scope is malformed, or wider than what was granted.
func invalidScope(format string, args ...any) Fault {
	return badRequest("invalid_scope", format, args...)
}

// invalidTarget: the resource is not ours (RFC 8707 §2).
func invalidTarget(format string, args ...any) Fault {
	return badRequest("invalid_target", format, args...)
}

// unsupportedGrantType: the token endpoint gives nothing for this grant type.
func unsupportedGrantType(format string, args ...any) Fault {
	return badRequest("unsupported_grant_type", format, args...)
}

// unsupportedResponseType: the authorization endpoint answers with code alone.
func unsupportedResponseType(format string, args ...any) Fault {
	return badRequest("unsupported_response_type", format, args...)
}

// invalidRedirectURI: a redirect URI of a registration is not acceptable (RFC 7591 §3.2.2).
func invalidRedirectURI(format string, args ...any) Fault {
	return badRequest("invalid_redirect_uri", format, args...)
}

// invalidClientMetadata: anything else of a registration is not (RFC 7591 §3.2.2).
func invalidClientMetadata(format string, args ...any) Fault {
	return badRequest("invalid_client_metadata", format, args...)
}

// invalidClient: the client is unknown or did not prove itself. Clients throw their registration away on it.
func invalidClient(basic bool, description string) Fault {
	return Fault{Status: http.StatusUnauthorized, Code: "invalid_client", Description: description, Basic: basic}
}

// Faults of which there is nothing more to say.
var (
	// RFC 9101 §6.3: request objects are not read.
	requestNotSupported    = badRequest("request_not_supported", "The parameter request is not supported.")
	requestURINotSupported = badRequest("request_uri_not_supported", "The parameter request_uri is not supported.")

	// serverError withholds what went wrong.
	serverError = Fault{Status: http.StatusInternalServerError, Code: "server_error", Description: "Something went wrong on our side."}
	// temporarilyUnavailable blames nobody's client or token, so that nobody throws one away.
	temporarilyUnavailable = Fault{
		Status: http.StatusServiceUnavailable, Code: "temporarily_unavailable", Description: "The database cannot be reached. Try again shortly.",
	}
)

// faultOf is what to tell about err: the Fault inside, or one that withholds its text.
func faultOf(err error) Fault {
	var f Fault
	switch limited := reason.Of(err); {
	case errors.As(err, &f):
		return f
	case limited.Word == reason.RateLimited: // no code of the protocol says it; this one blames nobody
		return Fault{Status: http.StatusTooManyRequests, Code: temporarilyUnavailable.Code, Description: limited.Message}
	case store.IsUnavailable(err):
		return temporarilyUnavailable
	}
	return serverError
}

// writeFault answers with f (RFC 6749 §5.2).
func writeFault(w http.ResponseWriter, f Fault) {
	if f.Basic && f.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="Graft", charset="UTF-8"`)
	}
	if w.Header().Get("Retry-After") == "" && (f.Status == http.StatusServiceUnavailable || f.Status == http.StatusTooManyRequests) {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, f.Status, struct {
		Code        string `json:"error"`
		Description string `json:"error_description,omitzero"`
	}{f.Code, f.description()})
}

// description is f's, in the characters that RFC 6749 §4.1.2.1 and §5.2 allow in error_description, and no more of it than
// a person reads.
func (f Fault) description() string {
	const most = 400
	s := describable(f.Description)
	return s[:min(len(s), most)]
}

// writeJSON writes v, which is ours to the last member, as an answer that nobody keeps.
func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":"server_error"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache")
	w.WriteHeader(status)
	_, _ = w.Write(b) // a client that left is not our error
}
