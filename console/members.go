package console

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// Members is GET /members.
func (h *Handler) Members(w http.ResponseWriter, r *http.Request) error {
	page, err := h.memberList(r.Context())
	if err != nil {
		return err
	}
	if page.Shell, err = h.shell(r.Context(), atMembers); err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, page.Page())
}

// memberList reads the page of all members, all but its shell.
func (h *Handler) memberList(ctx context.Context) (web.Members, error) {
	v := viewerOf(ctx)
	var members []store.Member
	var invites []store.Invite
	err := h.c.DB.As(ctx, v.caller, func(tx *store.Tx) (err error) {
		if members, err = tx.Members(ctx); err != nil {
			return err
		}
		invites, err = tx.Invites(ctx)
		return err
	})
	if err != nil {
		return web.Members{}, fmt.Errorf("load members: %w", err)
	}
	page := web.Members{
		Now: h.c.Now(), Change: v.caller.MayManage(), See: v.caller.MayManage() || v.caller.Role == store.RoleAuditor,
		Roles: rolesToGive(v.caller.Role), Role: web.Field{Value: string(store.RoleMember)},
	}
	for _, m := range members {
		page.Rows = append(page.Rows, webMember(v, m))
	}
	for _, i := range invites {
		row := web.Invite{
			Email: i.Email, Role: string(i.Role), URL: "/invites/" + i.ID.String(), MadeBy: i.MadeBy, MadeAt: i.CreatedAt, ExpiresAt: i.ExpiresAt,
			Change: v.caller.MayManage() && v.caller.Role.MayGive(i.Role),
		}
		if i.MadeByID == v.caller.User {
			row.MadeBy = "you"
		}
		page.Invites = append(page.Invites, row)
	}
	return page, nil
}

func webMember(v viewer, m store.Member) web.Member {
	w := web.Member{
		Name: m.Name, Email: m.Email, URL: "/members/" + m.UserID.String(), You: m.UserID == v.caller.User,
		Role: string(m.Role), Since: m.CreatedAt, SignedIn: moment(m.SignedInAt), Agents: m.Agents,
	}
	if w.Name == "" {
		w.Name = m.Email
	}
	return w
}

// rolesToGive are the roles that somebody of role by may give.
func rolesToGive(by store.Role) (list []web.Choice) {
	for _, role := range []store.Role{store.RoleMember, store.RoleAuditor, store.RoleAdmin, store.RoleOwner} {
		if by.MayGive(role) {
			list = append(list, web.Choice{Value: string(role), Label: capital(string(role))})
		}
	}
	return list
}

// Invite is POST /members. Its answer is the page with the invite's link, which no later page has. Whether the address has
// an account elsewhere makes no difference to it.
func (h *Handler) Invite(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	ctx, c := r.Context(), viewerOf(r.Context()).caller
	email, role := strings.TrimSpace(r.PostForm.Get("email")), r.PostForm.Get("role")
	var i store.Invite
	var token string
	err := h.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		i, token, err = tx.CreateInvite(ctx, email, store.Role(role))
		return err
	})
	ref := reason.Of(err)
	if err != nil && ref.Details["field"] == nil {
		return fmt.Errorf("invite: %w", err)
	}
	page, loaded := h.memberList(ctx)
	if loaded != nil {
		return loaded
	}
	status := http.StatusOK
	if err != nil {
		h.c.Refused(ctx, ref.Word)
		status = ref.Status()
		page.Email.Value, page.Role.Value = email, role
		if ref.Details["field"] == "role" {
			page.Role.Error = ref.Message
		} else {
			page.Email.Error = ref.Message
		}
	} else {
		h.changed(ctx, "Invited %s as %s", i.Email, i.Role)
		page.Made = &web.NewInvite{Email: i.Email, Role: string(i.Role), Link: h.c.Origin + "/invite/" + token}
	}
	if page.Shell, err = h.frame(ctx, atMembers); err != nil {
		return err
	}
	if page.Made != nil {
		page.Shell.Flash = i.Email + " is invited."
	}
	return h.draw(w, r, status, page.Page())
}

// InviteWithdraw is POST /invites/{id}/withdraw.
func (h *Handler) InviteWithdraw(w http.ResponseWriter, r *http.Request) error {
	id, err := store.ParseID[store.InviteKind](r.PathValue("id"))
	if err != nil {
		return err
	}
	ctx := r.Context()
	var i store.Invite
	err = h.c.DB.As(ctx, viewerOf(ctx).caller, func(tx *store.Tx) (err error) {
		i, err = tx.WithdrawInvite(ctx, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("withdraw invite %s: %w", id, err)
	}
	h.changed(ctx, "Withdrew the invite of %s", i.Email)
	return h.done(w, r, "The invite of "+i.Email+" is withdrawn. Its link has ended.", "/members")
}

// memberOf is the member that the path names, and what they hold.
func (h *Handler) memberOf(r *http.Request) (m store.Member, held store.Holdings, err error) {
	id, err := store.ParseID[store.UserKind](r.PathValue("id"))
	if err != nil {
		return m, held, err
	}
	ctx := r.Context()
	err = h.c.DB.As(ctx, viewerOf(ctx).caller, func(tx *store.Tx) (err error) {
		if m, err = tx.Member(ctx, id); err != nil {
			return err
		}
		held, err = tx.Holdings(ctx, id)
		return err
	})
	if err != nil {
		err = fmt.Errorf("load member %s: %w", id, err)
	}
	return m, held, err
}

// memberPage is the page of a member, all but its shell.
func (h *Handler) memberPage(v viewer, m store.Member) web.MemberDetail {
	page := web.MemberDetail{Now: h.c.Now(), Org: v.org, Member: webMember(v, m)}
	if v.caller.MayManage() && v.caller.Role.MayGive(m.Role) {
		page.Roles = rolesToGive(v.caller.Role)
	}
	return page
}

// Member is GET /members/{id}.
func (h *Handler) Member(w http.ResponseWriter, r *http.Request) error {
	m, _, err := h.memberOf(r)
	if err != nil {
		return err
	}
	page := h.memberPage(viewerOf(r.Context()), m)
	if page.Shell, err = h.shell(r.Context(), atMembers); err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, page.Page())
}

// MemberRole is POST /members/{id}/role. Sent twice, the second says the same.
func (h *Handler) MemberRole(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	m, _, err := h.memberOf(r)
	if err != nil {
		return err
	}
	ctx, v := r.Context(), viewerOf(r.Context())
	role := store.Role(r.PostForm.Get("role"))
	var was store.Role
	err = h.c.DB.As(ctx, v.caller, func(tx *store.Tx) (err error) {
		was, err = tx.SetRole(ctx, m.UserID, role)
		return err
	})
	page := h.memberPage(v, m)
	if ref := reason.Of(err); err != nil && ref.Details["field"] != nil && len(page.Roles) > 0 {
		h.c.Refused(ctx, ref.Word)
		page.Role = web.Field{Value: string(role), Error: ref.Message}
		if page.Shell, err = h.frame(ctx, atMembers); err != nil {
			return err
		}
		return h.draw(w, r, ref.Status(), page.Page())
	}
	if err != nil {
		return fmt.Errorf("set role of %s: %w", m.UserID, err)
	}
	if was != role {
		h.changed(ctx, "Made %s %s, who was %s", m.Email, role, was)
	}
	return h.done(w, r, fmt.Sprintf("%s is %s now.", page.Member.Name, role), page.Member.URL)
}

// MemberRemovePage is GET /members/{id}/remove: the question before the end.
func (h *Handler) MemberRemovePage(w http.ResponseWriter, r *http.Request) error {
	m, held, err := h.memberOf(r)
	if err != nil {
		return err
	}
	v := viewerOf(r.Context())
	if !v.caller.MayManage() || !v.caller.Role.MayGive(m.Role) {
		return reason.Refuse(reason.Forbidden, "Your role cannot remove this member. Ask an owner of the organisation.")
	}
	shell, err := h.shell(r.Context(), atMembers)
	if err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, web.MemberRemove{
		Shell: shell, Org: v.org, Member: webMember(v, m), Agents: held.Agents, Apps: held.Grants, Invites: held.Invites,
	}.Page())
}

// MemberRemove is POST /members/{id}/remove. What the member has open ends with their next look; see still.
func (h *Handler) MemberRemove(w http.ResponseWriter, r *http.Request) error {
	m, _, err := h.memberOf(r)
	if err != nil {
		return err
	}
	ctx, v := r.Context(), viewerOf(r.Context())
	if err := h.c.DB.As(ctx, v.caller, func(tx *store.Tx) error { return tx.RemoveMember(ctx, m.UserID) }); err != nil {
		return fmt.Errorf("remove member %s: %w", m.UserID, err)
	}
	h.changed(ctx, "Removed %s, who was %s", m.Email, m.Role)
	if m.UserID == v.caller.User {
		http.Redirect(w, r, "/", http.StatusSeeOther) // to what else is theirs, or to the sign-in page
		return nil
	}
	return h.done(w, r, webMember(v, m).Name+" is removed.", "/members")
}

// noteSignIn keeps when somebody signed in, for the page of members. It is no reason to keep them out.
func (h *Handler) noteSignIn(ctx context.Context, user store.UserID, org store.OrgID) {
	// The least of roles: it writes one's own row.
	c := store.Caller{Org: org, User: user, Role: store.RoleAuditor, Via: store.ViaSession}
	if err := h.c.DB.As(ctx, c, func(tx *store.Tx) error { return tx.NoteSignIn(ctx) }); err != nil {
		h.c.Log.WarnContext(ctx, "sign-in not noted", slog.String("user", user.String()), slog.Any("err", err), slog.String("request_id", h.c.RequestID(ctx)))
	}
}
