package oauth

import (
	"net/http"
	"slices"
	"strings"
)

// admit lets pages of every origin call an endpoint with the methods it has, answers their preflights, and reports
// whether there is something left to answer. Clients that run in a browser need it; cookies are never looked at here.
func admit(w http.ResponseWriter, r *http.Request, methods ...string) bool {
	h := w.Header()
	allow := strings.Join(append(methods, http.MethodOptions), ", ")
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Retry-After")
	switch {
	case slices.Contains(methods, r.Method):
		return true
	case r.Method == http.MethodOptions:
		h.Set("Allow", allow)
		h.Set("Access-Control-Allow-Methods", allow)
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, Mcp-Protocol-Version")
		h.Set("Access-Control-Max-Age", "7200")
		w.WriteHeader(http.StatusNoContent)
	default:
		h.Set("Allow", allow)
		writeFault(w, Fault{Status: http.StatusMethodNotAllowed, Code: "invalid_request", Description: "This endpoint takes " + allow + "."})
	}
	return false
}
