package mcp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
)

// A modelled session is what the model knows of one.
type modelled struct {
	c       *client
	agent   int
	live    bool
	streams []*listener
}

// Whatever agents do with sessions and streams, in whatever order, each answer is what a small model says: a live
// session answers its own agent, an ended one nobody, a foreign one refuses, and a revoked agent has nothing left.
func TestSessionsAndStreamsFollowTheModel(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Replicas: 1}) // one replica: the model has no "soon"
	rapid.Check(t, func(rt *rapid.T) {
		type agent struct {
			store.Agent
			token   string
			revoked bool
		}
		var agents []*agent
		k.Owner = organisation(t, k) // a user has only so many
		for range 2 {
			a, token := k.Agent(t)
			agents = append(agents, &agent{Agent: a, token: token})
		}
		var sessions []*modelled
		pick := func(rt *rapid.T) *modelled {
			if len(sessions) == 0 {
				rt.Skip("no session yet")
			}
			return sessions[rapid.IntRange(0, len(sessions)-1).Draw(rt, "session")]
		}
		want := func(s *modelled, as int) int {
			switch {
			case agents[as].revoked:
				return http.StatusUnauthorized
			case as != s.agent:
				return http.StatusUnauthorized
			case !s.live:
				return http.StatusNotFound
			}
			return http.StatusOK
		}
		check := func(rt *rapid.T, what string, got, want int) {
			if got != want {
				rt.Fatalf("%s = %d, want %d", what, got, want)
			}
		}
		end := func(s *modelled) {
			for _, l := range s.streams {
				l.ended()
			}
			s.live, s.streams = false, nil
		}
		rt.Repeat(map[string]func(*rapid.T){
			"open": func(rt *rapid.T) {
				n := rapid.IntRange(0, 1).Draw(rt, "agent")
				c := &client{t: t, url: k.URL + "/mcp", token: agents[n].token}
				a := c.post(initialize("2025-06-18"))
				if agents[n].revoked {
					check(rt, "initialize by a revoked agent", a.status, http.StatusUnauthorized)
					return
				}
				check(rt, "initialize", a.status, http.StatusOK)
				c.session = a.header.Get("Mcp-Session-Id")
				sessions = append(sessions, &modelled{c: c, agent: n, live: true})
			},
			"use": func(rt *rapid.T) {
				s, as := pick(rt), rapid.IntRange(0, 1).Draw(rt, "as")
				c := *s.c
				c.token = agents[as].token
				check(rt, fmt.Sprintf("ping as agent %d", as), c.post(ping).status, want(s, as))
			},
			"listen": func(rt *rapid.T) {
				s := pick(rt)
				if w := want(s, s.agent); w != http.StatusOK {
					check(rt, "GET", s.c.do(http.MethodGet, s.c.url, nil).status, w)
					return
				}
				s.streams = append(s.streams, s.c.listen())
			},
			"leave": func(rt *rapid.T) {
				s := pick(rt)
				if len(s.streams) == 0 {
					rt.Skip("no stream")
				}
				s.streams[0].cancel()
				s.streams = s.streams[1:]
			},
			"delete": func(rt *rapid.T) {
				s, as := pick(rt), rapid.IntRange(0, 1).Draw(rt, "as")
				c := *s.c
				c.token = agents[as].token
				w := want(s, as)
				got := c.do(http.MethodDelete, c.url, nil).status
				if w != http.StatusOK {
					check(rt, "DELETE", got, w)
					return
				}
				check(rt, "DELETE", got, http.StatusNoContent)
				end(s)
			},
			"change the list": func(rt *rapid.T) {
				s := pick(rt)
				if want(s, s.agent) != http.StatusOK {
					rt.Skip("not live")
				}
				tool := rapid.SampledFrom([]string{"promote", "demote"}).Draw(rt, "tool")
				changed := s.c.call(tool, `{"vendor":"builtin","name":"reshape"}`)
				listed := s.c.tools()
				if has := strings.Contains(strings.Join(listed, " "), "builtin__reshape"); changed.IsError || has != (tool == "promote") {
					rt.Fatalf("%s = %s, and then the list is %v", tool, changed.text(), listed)
				}
			},
			"revoke": func(rt *rapid.T) {
				n := rapid.IntRange(0, 9).Draw(rt, "agent")
				if n > 1 || agents[n].revoked {
					rt.Skip("seldom")
				}
				err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error { return tx.RevokeAgent(t.Context(), agents[n].ID) })
				if err != nil {
					rt.Fatal(err)
				}
				agents[n].revoked = true
				for _, s := range sessions {
					if s.agent == n {
						end(s)
					}
				}
				c := &client{t: t, url: k.URL + "/mcp", token: agents[n].token}
				eventually(t, "the token refused", func() bool { return c.post(ping).status == http.StatusUnauthorized })
			},
		})
	})
}

// A16: a message goes out once a session, and nothing is ever replayed to anybody.
func TestA16NothingIsReplayed(t *testing.T) {
	t.Parallel()
	k := servertest.Start(t, servertest.Options{Replicas: 1})
	c := connect(t, k, "2025-06-18")
	first, second := c.listen(), c.listen()
	c.call("promote", `{"vendor":"builtin","name":"reshape"}`)
	second.wait(listChanged)
	foreign := connect(t, k, "2025-06-18")
	resp := foreign.send(t.Context(), http.MethodGet, foreign.url, nil, "Last-Event-ID: 1")
	defer func() { _ = resp.Body.Close() }()
	k.StopAll()
	for name, lines := range map[string][]string{"the other stream of the session": first.ended(), "the stream it came on": second.ended()} {
		for _, line := range lines {
			if line == listChanged || strings.HasPrefix(line, "id:") {
				t.Errorf("%s has %q", name, line)
			}
		}
	}
	b := make([]byte, 4096)
	n, _ := resp.Body.Read(b)
	if strings.Contains(string(b[:n]), "list_changed") {
		t.Errorf("a foreign Last-Event-ID was answered with %q", b[:n])
	}
}
