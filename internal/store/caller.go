package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/getgraft/graft/internal/reason"
)

// A Caller is who acts, and for which organisation. It is made in four places only: from a bearer, from a web
// session, by the CLI, and by a job. It rides a request's context as far as the handler and is an argument below.
type Caller struct {
	Org   OrgID
	User  UserID  // who signed in, or who made the agent; zero for the CLI and jobs
	Agent AgentID // zero for people
	Grant GrantID // zero for static tokens and people
	Role  Role    // of User in Org; RoleOwner for the CLI
	Via   Via
}

// Via is how a Caller came in.
type Via string

// The four places where a Caller is made.
const (
	ViaBearer  Via = "bearer"
	ViaSession Via = "session"
	ViaCLI     Via = "cli"
	ViaJob     Via = "job"
)

// Role is what a member may do in an organisation.
type Role string

// The roles, from most to least.
const (
	RoleOwner   Role = "owner"
	RoleAdmin   Role = "admin"
	RoleMember  Role = "member"
	RoleAuditor Role = "auditor" // reads only
)

// ParseRole reads a role's name.
func ParseRole(s string) (Role, error) {
	switch r := Role(s); r {
	case RoleOwner, RoleAdmin, RoleMember, RoleAuditor:
		return r, nil
	}
	return "", reason.Refuse(reason.InputInvalid, "%q is not a role. Use owner, admin, member or auditor.", s).Field("role")
}

// check refuses a Caller that is not fully made. It guards DB.As, so no zero Caller passes.
func (c Caller) check() error {
	switch {
	case c.Org.IsZero():
		return errors.New("store: caller has no organisation")
	case c.Via == ViaBearer && c.Agent.IsZero():
		return errors.New("store: caller by bearer has no agent")
	case c.Via == ViaSession && (c.User.IsZero() || c.Role == ""):
		return errors.New("store: caller by web session has no user or role")
	case c.Via != ViaBearer && c.Via != ViaSession && c.Via != ViaCLI && c.Via != ViaJob:
		return fmt.Errorf("store: caller came by %q", c.Via)
	}
	return nil
}

// manages reports whether c may change what every member made.
func (c Caller) manages() bool {
	return c.Via == ViaCLI || c.Via == ViaJob || c.Via == ViaSession && (c.Role == RoleOwner || c.Role == RoleAdmin)
}

// MayManage reports whether c may change what belongs to the whole organisation: upstreams and secrets.
func (c Caller) MayManage() bool { return c.manages() }

// MayMakeAgents reports whether c may make agents of their own.
func (c Caller) MayMakeAgents() bool {
	return c.manages() || c.Via == ViaSession && c.Role == RoleMember
}

// MayChange reports whether c may change an agent that user made.
func (c Caller) MayChange(user UserID) bool {
	return c.manages() || c.MayMakeAgents() && c.User == user
}

// seesAll reports whether c may read what every member did.
func (c Caller) seesAll() bool { return c.manages() || c.Via == ViaSession && c.Role == RoleAuditor }

// maySee reports whether c may read an agent that user made: auditors read all, members and agents those of their
// own user.
func (c Caller) maySee(user UserID) bool {
	return c.seesAll() || c.User == user
}

type callerKey struct{}

// WithCaller returns a context that carries c to the handler.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFrom is the Caller the middleware put into ctx. Without one it is the zero Caller, which DB.As refuses.
func CallerFrom(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
