package server

import (
	"context"
	"io"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/getgraft/graft/oauth"
	"github.com/getgraft/graft/web"
)

// maxForm is how large a form of the console may be.
const maxForm = 64 << 10

// routes is every path of the gateway and what a request to it goes through, outermost first.
func (s *Server) routes() http.Handler {
	r := chi.NewRouter()
	r.Use(s.withEvent, s.bodyInTime, middleware.GetHead)
	r.NotFound(s.notFound)
	r.MethodNotAllowed(s.notFound)

	// Probes: no Host, no bearer, no session.
	r.Get("/healthz", s.healthz)
	r.Get("/readyz", s.readyz)

	// The MCP endpoint. Every method goes through the bearer first, and there is never a redirect.
	r.Group(func(r chi.Router) {
		r.Use(s.recovered(s.failMCP), capBody(maxBody), s.ownHost(s.failMCP), s.cors(s.failMCP), s.bearer, noteCaller,
			s.limitMCP)
		r.HandleFunc("/mcp", s.mcpHandler)
		r.HandleFunc("/mcp/", s.mcpHandler)
	})

	// The authorization server: what programs ask of it.
	r.Group(func(r chi.Router) {
		r.Use(s.recovered(s.failMCP), capBody(maxBody), s.ownHost(s.failMCP))
		for _, at := range []string{"", "/mcp", "/mcp/"} {
			r.HandleFunc("/.well-known/oauth-protected-resource"+at, s.oauth.ResourceMetadata)
			r.HandleFunc("/.well-known/oauth-authorization-server"+at, s.oauth.ServerMetadata)
			r.HandleFunc("/.well-known/openid-configuration"+at, s.oauth.NoOpenID)
		}
		r.HandleFunc("/mcp/.well-known/*", s.oauth.NoOpenID)
		r.Get("/.well-known/openai-apps-challenge", s.openAIChallenge)
		r.HandleFunc("/.well-known/jwks.json", s.oauth.Keys(s.publicKeys))
		r.With(s.c.register.limit(s.addressKey, s.oauth.Fail)).HandleFunc("/mcp/oauth/register", s.oauth.Register)
		limited := r.With(s.c.oauth.limit(s.addressKey, s.oauth.Fail))
		limited.HandleFunc("/mcp/oauth/token", s.oauth.Token)
		limited.HandleFunc("/mcp/oauth/revoke", s.oauth.Revoke)
	})

	// The console.
	h := s.console
	r.Group(func(r chi.Router) {
		r.Use(secured, s.recovered(s.failPage), capBody(maxForm), s.ownHost(s.failPage))
		r.Handle("/static/*", web.Static())
		r.Get("/favicon.ico", s.favicon)

		// Where a client sends the person's browser.
		r.With(s.c.oauth.limit(s.addressKey, s.failPage)).Get("/mcp/oauth/authorize", s.page(s.oauth.Authorize))

		r.Group(func(r chi.Router) {
			r.Use(s.sameOrigin, h.Session)
			limited := r.With(s.c.signIn.limit(s.addressKey, s.failPage))
			r.Get("/signin", s.page(h.SignInPage))
			limited.Post("/signin", s.page(h.SignIn))
			// What a passkey signs is counted apart from what it signed, else each sign-in would be two.
			asked := r.With(s.c.signIn.limit(s.addressKey, s.failPage))
			asked.Post("/signin/passkey", s.page(h.SignInOptions))
			if s.provider != nil {
				asked.Post("/sign-in/oidc", s.page(h.SignOnBegin))
				limited.Get(SignOnPath, s.page(h.SignOnBack))
				asked.Post("/invite/{token}/oidc", s.page(h.JoinSignOn))
			}
			r.Get("/setup/{token}", s.page(h.SetupPage))
			limited.Post("/setup/{token}", s.page(h.Setup))
			r.Get("/invite/{token}", s.page(h.JoinPage))
			limited.Post("/invite/{token}", s.page(h.Join))
			asked.Post("/setup/{token}/passkey", s.page(h.SetupOptions))

			r.Group(func(r chi.Router) {
				r.Use(h.Require, noteCaller)
				acts := r.With(s.c.api.limit(userKey, s.failPage), h.Whole)
				reads := r.With(s.pages.limit(s.failPage))
				reads.Get("/", s.page(h.Home))
				acts.Post("/signout", s.page(h.SignOut))
				reads.Get("/confirm", s.page(h.ConfirmPage))
				acts.With(s.c.signIn.limit(s.addressKey, s.failPage)).Post("/confirm", s.page(h.Confirm))
				acts.Post("/confirm/passkey", s.page(h.ConfirmOptions))
				reads.Get("/settings", s.page(h.Settings))
				acts.Post("/settings/name", s.page(h.SettingsName))
				reads.Get("/settings/password", s.page(h.SettingsPasswordPage))
				acts.Post("/settings/password", s.page(h.SettingsPassword))
				acts.Post("/settings/passkeys", s.page(h.PasskeyAdd))
				reads.Get("/settings/passkeys/new", s.page(h.PasskeyNew))
				acts.Post("/settings/passkeys/options", s.page(h.PasskeyOptions))
				reads.Get("/settings/passkeys/{id}", s.page(h.PasskeyRenamePage))
				acts.Post("/settings/passkeys/{id}", s.page(h.PasskeyRename))
				reads.Get("/settings/passkeys/{id}/remove", s.page(h.PasskeyRemovePage))
				acts.Post("/settings/passkeys/{id}/remove", s.page(h.PasskeyRemove))
				if s.provider != nil {
					acts.With(s.c.signIn.limit(s.addressKey, s.failPage)).Post("/confirm/oidc", s.page(h.ConfirmSignOn))
					acts.Post("/settings/identities", s.page(h.IdentityAdd))
					reads.Get("/settings/identities/new", s.page(h.IdentityNew))
					reads.Get("/settings/identities/{id}", s.page(h.IdentityRenamePage))
					acts.Post("/settings/identities/{id}", s.page(h.IdentityRename))
					reads.Get("/settings/identities/{id}/remove", s.page(h.IdentityRemovePage))
					acts.Post("/settings/identities/{id}/remove", s.page(h.IdentityRemove))
				}
				reads.Get("/settings/sessions/end", s.page(h.SessionsEndPage))
				acts.Post("/settings/sessions/end", s.page(h.SessionsEnd))
				reads.Get("/settings/sessions/{id}/end", s.page(h.SessionEndPage))
				acts.Post("/settings/sessions/{id}/end", s.page(h.SessionEnd))
				reads.Get("/agents", s.page(h.Agents))
				acts.Post("/agents", s.page(h.AgentCreate))
				reads.Get("/agents/new", s.page(h.AgentNew))
				reads.Get("/agents/{id}", s.page(h.Agent))
				reads.Get("/agents/{id}/token", s.page(h.AgentToken))
				acts.Post("/agents/{id}/token", s.page(h.AgentRenew))
				acts.Post("/agents/{id}/answers", s.page(h.AgentAskAgain))
				reads.Get("/agents/{id}/revoke", s.page(h.AgentRevokePage))
				acts.Post("/agents/{id}/revoke", s.page(h.AgentRevoke))
				acts.Post("/agents/{id}/promote", s.page(h.AgentPromote))
				acts.Post("/agents/{id}/demote", s.page(h.AgentDemote))
				reads.Get("/agents/{id}/connections", s.page(h.AgentScope))
				acts.Post("/agents/{id}/connections", s.page(h.AgentSetScope))
				reads.Get("/asks", s.page(h.Asks))
				reads.Get("/asks/{id}", s.page(h.Ask))
				acts.Post("/asks/{id}", s.page(h.AskAnswer))
				reads.Get("/activity", s.page(h.Activity))
				reads.Get("/activity/verify", s.page(h.ActivityVerify))
				reads.Get("/activity/{id}", s.page(h.Run))
				reads.Get("/connections", s.page(h.Connections))
				acts.Post("/connections", s.page(h.ConnectionCreate))
				reads.Get("/connections/new", s.page(h.ConnectionNew))
				reads.Get("/connections/{id}", s.page(h.Connection))
				acts.Post("/connections/{id}/credential", s.page(h.ConnectionCredential))
				reads.Get("/connections/{id}/revoke", s.page(h.ConnectionRevokePage))
				acts.Post("/connections/{id}/revoke", s.page(h.ConnectionRevoke))
				reads.Get("/upstreams", s.page(h.Upstreams))
				acts.Post("/upstreams", s.page(h.UpstreamCreate))
				reads.Get("/upstreams/new", s.page(h.UpstreamNew))
				reads.Get("/upstreams/{id}", s.page(h.Upstream))
				acts.Post("/upstreams/{id}/test", s.page(h.UpstreamTest))
				reads.Get("/upstreams/{id}/change", s.page(h.UpstreamChangePage))
				acts.Post("/upstreams/{id}/settings", s.page(h.UpstreamSettings))
				acts.Post("/upstreams/{id}/headers", s.page(h.UpstreamHeaders))
				reads.Get("/upstreams/{id}/remove", s.page(h.UpstreamRemovePage))
				acts.Post("/upstreams/{id}/remove", s.page(h.UpstreamRemove))
				acts.Post("/secrets", s.page(h.SecretSet))
				reads.Get("/secrets/{id}/remove", s.page(h.SecretRemovePage))
				acts.Post("/secrets/{id}/remove", s.page(h.SecretRemove))
				reads.Get("/members", s.page(h.Members))
				acts.Post("/members", s.page(h.Invite))
				acts.Post("/invites/{id}/withdraw", s.page(h.InviteWithdraw))
				reads.Get("/members/{id}", s.page(h.Member))
				acts.Post("/members/{id}/role", s.page(h.MemberRole))
				reads.Get("/members/{id}/remove", s.page(h.MemberRemovePage))
				acts.Post("/members/{id}/remove", s.page(h.MemberRemove))
				r.Get("/live/asks", s.page(h.LiveAsks))
				r.Get("/live/asks/{id}", s.page(h.LiveAsk))
				r.Get("/live/agents", s.page(h.LiveAgents))
				r.Get("/live/agents/{id}", s.page(h.LiveAgent))
				reads.Get("/agents/{id}/apps/{grant}/end", s.page(h.AppEndPage))
				acts.Post("/agents/{id}/apps/{grant}/end", s.page(h.AppEnd))
				reads.Get("/apps", s.page(h.Apps))
				reads.Get("/consent/{request}", s.page(h.Consent))
				acts.Post("/consent/{request}", s.page(h.ConsentAnswer))
			})
		})
	})
	return r
}

// publicKeys are what access tokens are verified with.
func (s *Server) publicKeys(ctx context.Context) ([]oauth.PublicKey, error) {
	published, err := s.tokens.Published(ctx)
	keys := make([]oauth.PublicKey, len(published))
	for i, p := range published {
		keys[i] = oauth.PublicKey{Kid: p.Kid.String(), Key: p.Key}
	}
	return keys, err
}

// openAIChallenge is what the operator was told to serve there, and nothing where they were not.
func (s *Server) openAIChallenge(w http.ResponseWriter, r *http.Request) {
	if s.c.OpenAIChallenge == "" {
		s.notFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, s.c.OpenAIChallenge) // a client that left is not our error
}
