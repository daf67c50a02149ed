package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/getgraft/graft/internal/consent"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// Authorize is GET /mcp/oauth/authorize (RFC 6749 §4.1.1): what the client asks for is stored, and the person's browser goes
// on to the page that asks them. What it returns is a refusal for a page, because nothing is proven that could be redirected
// to.
func (s *Server) Authorize(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	query := r.URL.RawQuery
	values, err := url.ParseQuery(query)
	if err != nil {
		return unproven("The app's request cannot be read.")
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" && mode != "navigate" {
		return unproven("A person's browser opens this address. Here another page loaded it as a part of itself.")
	}
	var proven *consent.Request
	if isDocumentURL(values.Get("client_id")) != nil || len(values["client_id"]) != 1 {
		req, err := s.Prove(r.Context(), query)
		var bounce *consent.Bounce
		if errors.As(err, &bounce) {
			http.Redirect(w, r, bounce.URL, http.StatusSeeOther)
			return nil
		}
		if err != nil {
			return err
		}
		proven = &req
	} else if err := s.looksRight(values); err != nil {
		return err
	} // else its document is fetched once somebody has signed in
	secure := strings.HasPrefix(s.c.Origin, "https:")
	id, browser, err := s.desk.Begin(r.Context(), query, proven)
	if err != nil {
		return err
	}
	for _, c := range append(consent.SurplusCookies(r, secure), consent.BrowserCookie(id, browser, secure)) {
		http.SetCookie(w, c)
	}
	http.Redirect(w, r, "/consent/"+id, http.StatusSeeOther)
	return nil
}

// looksRight refuses, on a page, what no document could make right, so that nothing is kept for whoever sends just anything.
func (s *Server) looksRight(q url.Values) error {
	if uri := q["redirect_uri"]; len(uri) > 1 || len(uri) == 1 && checkRedirectURI(uri[0]) != nil {
		return unproven("The app wants its answer sent to an address that no app may have it sent to.")
	}
	var fault Fault
	if _, err := s.asksFor(q); errors.As(err, &fault) {
		return unproven("The app's request is not right: %s", fault.Description)
	}
	return nil
}

// Prove implements consent.Prover. First who asks and where the answer goes; from then on every error is the client's to
// hear.
func (s *Server) Prove(ctx context.Context, query string) (consent.Request, error) {
	q, err := url.ParseQuery(query)
	if err != nil {
		return consent.Request{}, unproven("The app's request cannot be read.")
	}
	c, err := s.asking(ctx, q)
	if err != nil {
		return consent.Request{}, err
	}
	uri, err := redirectOf(c, q)
	if err != nil {
		return consent.Request{}, err
	}
	state := q.Get("state")
	if len(q["state"]) > 1 {
		state = "" // which of them is meant nobody knows
	}
	scope, err := s.asksFor(q)
	var fault Fault
	if errors.As(err, &fault) {
		return consent.Request{}, &consent.Bounce{URL: consent.Answer(uri, s.c.Origin, state, url.Values{
			"error": {fault.Code}, "error_description": {fault.description()},
		})}
	}
	if err != nil {
		return consent.Request{}, err
	}
	return consent.Request{
		ClientID: c.ID, ClientName: c.Name, Document: c.Document, RedirectURI: uri, State: state, Challenge: q.Get("code_challenge"), Scope: scope,
	}, nil
}

func unproven(format string, args ...any) error {
	return reason.Refuse(reason.ClientNotProven, format, args...)
}

// asking finds the client that asks.
func (s *Server) asking(ctx context.Context, q url.Values) (c Client, err error) {
	if len(q["client_id"]) != 1 || q.Get("client_id") == "" {
		return Client{}, unproven("The app did not say who it is: its request needs one client_id.")
	}
	id := q.Get("client_id")
	if isDocumentURL(id) == nil {
		c, err = s.c.Documents.Client(ctx, id)
		if ref := reason.Of(err); err != nil && ref.Word == reason.InputInvalid {
			return Client{}, unproven("%s", ref.Message)
		}
		return c, err
	}
	if c, err = s.registered(ctx, id); store.IsAbsent(err) {
		return Client{}, unproven("This app is not known here. Its registration may have been deleted because nobody used it for two days. " +
			"Remove the connection in the app and add it again.")
	}
	return c, err
}

// redirectOf is where the client's answer goes: one of the addresses it gave for that (RFC 6749 §3.1.2.3). Where it gave one
// alone it may leave it out.
func redirectOf(c Client, q url.Values) (string, error) {
	asked := q["redirect_uri"]
	switch {
	case len(asked) > 1:
		return "", unproven("The app's request has redirect_uri more than once.")
	case len(asked) == 0 && len(c.RedirectURIs) == 1:
		return c.RedirectURIs[0], nil
	case len(asked) == 0:
		return "", unproven("The app's request has no redirect_uri, and the app registered %d.", len(c.RedirectURIs))
	case !matchRedirect(c.RedirectURIs, asked[0]):
		return "", unproven("The app wants its answer sent to an address that it did not register: %.200q.", asked[0])
	}
	return asked[0], nil
}

// asksFor holds the rest of a request to the rules, and is the scope that it asks for. Its error is a Fault.
func (s *Server) asksFor(q url.Values) (scope string, err error) {
	for name, values := range q {
		if len(values) > 1 && name != "resource" {
			return "", invalidRequest("%.40s is there more than once.", name)
		}
	}
	for _, resource := range q["resource"] { // which may be there more than once (RFC 8707 §2)
		if !ownResource(s.c.Origin, resource) {
			return "", invalidTarget("The resource is not %s.", s.issuer.resource())
		}
	}
	switch {
	case q.Has("request"):
		return "", requestNotSupported
	case q.Has("request_uri"):
		return "", requestURINotSupported
	case q.Get("response_type") == "":
		return "", invalidRequest("response_type is missing: it must be code.")
	case q.Get("response_type") != "code":
		return "", unsupportedResponseType("response_type must be code.")
	case q.Get("response_mode") != "" && q.Get("response_mode") != "query":
		return "", invalidRequest("response_mode must be query.")
	case q.Get("prompt") == "none":
		return "", badRequest("interaction_required", "A person is always asked.")
	}
	if err := checkChallenge(q.Get("code_challenge"), q.Get("code_challenge_method")); err != nil {
		return "", err
	}
	scope, ok := grantScope(q.Get("scope"))
	if !ok {
		return "", invalidScope("scope has characters that no scope has.")
	}
	return scope, nil
}
