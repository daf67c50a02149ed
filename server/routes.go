package server

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

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

	// The console.
	h := s.console
	r.Group(func(r chi.Router) {
		r.Use(secured, s.recovered(s.failPage), capBody(maxForm), s.ownHost(s.failPage))
		r.Handle("/static/*", web.Static())
		r.Get("/favicon.ico", s.favicon)

		r.Group(func(r chi.Router) {
			r.Use(s.sameOrigin, h.Session)
			limited := r.With(s.c.signIn.limit(s.addressKey, s.failPage))
			r.Get("/signin", s.page(h.SignInPage))
			limited.Post("/signin", s.page(h.SignIn))
			r.Get("/setup/{token}", s.page(h.SetupPage))
			limited.Post("/setup/{token}", s.page(h.Setup))

			r.Group(func(r chi.Router) {
				r.Use(h.Require, noteCaller)
				acts := r.With(s.c.api.limit(userKey, s.failPage))
				r.Get("/", s.page(h.Home))
				acts.Post("/signout", s.page(h.SignOut))
				r.Get("/agents", s.page(h.Agents))
				acts.Post("/agents", s.page(h.AgentCreate))
				r.Get("/agents/new", s.page(h.AgentNew))
				r.Get("/agents/{id}", s.page(h.Agent))
				r.Get("/agents/{id}/token", s.page(h.AgentToken))
				acts.Post("/agents/{id}/token", s.page(h.AgentRenew))
				acts.Post("/agents/{id}/answers", s.page(h.AgentAskAgain))
				r.Get("/agents/{id}/revoke", s.page(h.AgentRevokePage))
				acts.Post("/agents/{id}/revoke", s.page(h.AgentRevoke))
				acts.Post("/agents/{id}/promote", s.page(h.AgentPromote))
				acts.Post("/agents/{id}/demote", s.page(h.AgentDemote))
				r.Get("/asks", s.page(h.Asks))
				r.Get("/asks/{id}", s.page(h.Ask))
				acts.Post("/asks/{id}", s.page(h.AskAnswer))
				r.Get("/activity", s.page(h.Activity))
				r.Get("/activity/verify", s.page(h.ActivityVerify))
				r.Get("/activity/{id}", s.page(h.Run))
				r.Get("/upstreams", s.page(h.Upstreams))
				acts.Post("/upstreams", s.page(h.UpstreamCreate))
				r.Get("/upstreams/new", s.page(h.UpstreamNew))
				r.Get("/upstreams/{id}", s.page(h.Upstream))
				acts.Post("/upstreams/{id}/test", s.page(h.UpstreamTest))
				r.Get("/upstreams/{id}/change", s.page(h.UpstreamChangePage))
				acts.Post("/upstreams/{id}/settings", s.page(h.UpstreamSettings))
				acts.Post("/upstreams/{id}/headers", s.page(h.UpstreamHeaders))
				r.Get("/upstreams/{id}/remove", s.page(h.UpstreamRemovePage))
				acts.Post("/upstreams/{id}/remove", s.page(h.UpstreamRemove))
				acts.Post("/secrets", s.page(h.SecretSet))
				r.Get("/secrets/{id}/remove", s.page(h.SecretRemovePage))
				acts.Post("/secrets/{id}/remove", s.page(h.SecretRemove))
				r.Get("/live/asks", s.page(h.LiveAsks))
				r.Get("/live/asks/{id}", s.page(h.LiveAsk))
				r.Get("/live/agents", s.page(h.LiveAgents))
				r.Get("/live/agents/{id}", s.page(h.LiveAgent))
				r.Get("/agents/{id}/apps/{grant}/end", s.page(h.AppEndPage))
				acts.Post("/agents/{id}/apps/{grant}/end", s.page(h.AppEnd))
				r.Get("/apps", s.page(h.Apps))
				r.Get("/consent/{request}", s.page(h.Consent))
				acts.Post("/consent/{request}", s.page(h.ConsentAnswer))
			})
		})
	})
	return r
}
