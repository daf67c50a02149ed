package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// A setup is a one-time link that works, and whose it is.
type setup struct {
	token string
	link  store.Link
	orgs  []store.Membership // of the link's user; none for a welcome link
}

func (s setup) welcome() bool { return s.link.Kind == store.LinkWelcome }

// orgName names the organisation that the link is for, where there is one.
func (s setup) orgName() string {
	if len(s.orgs) == 1 {
		return s.orgs[0].OrgName
	}
	return ""
}

// setup looks at the link of the request and uses nothing up. The link of somebody who is a member nowhere has ended.
func (h *Handler) setup(r *http.Request) (setup, error) {
	s := setup{token: r.PathValue("token")}
	ended := reason.Refuse(reason.LinkNotValid, "This link was used, or has expired.")
	if !store.WellFormed(store.LinkTokenPrefix, s.token) {
		return s, ended
	}
	var err error
	if s.link, err = h.c.DB.System().Link(r.Context(), s.token); err != nil {
		return s, fmt.Errorf("load one-time link: %w", err)
	}
	if s.welcome() {
		return s, nil
	}
	if s.orgs, err = h.c.DB.System().Memberships(r.Context(), s.link.UserID); err != nil {
		return s, fmt.Errorf("load memberships of %s: %w", s.link.UserID, err)
	}
	if len(s.orgs) == 0 {
		return s, ended
	}
	return s, nil
}

// setupPage is the link's form, empty.
func (h *Handler) setupPage(r *http.Request, s setup) web.Setup {
	return web.Setup{
		Focus: h.focus(), Passkeys: h.hasPasskeys(r), Action: "/setup/" + s.token, Welcome: s.welcome(), OrgName: s.orgName(),
		AskName: s.link.Name == "", Email: web.Field{Value: s.link.Email},
	}
}

// SetupPage is GET /setup/{token}.
func (h *Handler) SetupPage(w http.ResponseWriter, r *http.Request) error {
	s, err := h.setup(r)
	if err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, h.setupPage(r, s).Page())
}

// Setup is POST /setup/{token}: it spends the link and signs in.
func (h *Handler) Setup(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	ctx := r.Context()
	s, err := h.setup(r)
	if err != nil {
		return err
	}
	page, password, byKey := h.setupPage(r, s), r.PostForm.Get("password"), r.PostForm.Get("passkey") != ""
	if wrong := fillSetup(&page, r, password, byKey); wrong > 0 {
		page.Error = "Nothing was made yet. " + anotherLook(wrong)
		return h.draw(w, r, reason.InputInvalid.Status(), page.Page())
	}
	in := store.Setup{Name: page.Name.Value, Email: page.Email.Value, Org: page.Org.Value}
	if byKey {
		k, err := h.created(w, r, s.link.UserID)
		if ref := reason.Of(err); err != nil && ref.Word == reason.SignInFailed {
			page.Error = ref.Message
			return h.draw(w, r, ref.Status(), page.Page())
		}
		if err != nil {
			return err
		}
		k.Name = browser(r.UserAgent())
		in.Passkey, in.User = &k, k.UserID
	}
	if password != "" {
		if in.Password, err = h.passwords.hash(ctx, password); err != nil {
			return fmt.Errorf("hash password: %w", err)
		}
	}
	return h.use(w, r, s, in)
}

// SetupOptions is POST /setup/{token}/passkey: what the browser makes a passkey of, for whom the link is of. It uses
// nothing up, and is refused where the form would be.
func (h *Handler) SetupOptions(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(r); err != nil {
		return err
	}
	s, err := h.setup(r)
	if err != nil {
		return err
	}
	page := h.setupPage(r, s)
	if fillSetup(&page, r, r.PostForm.Get("password"), true) > 0 {
		for _, f := range []web.Field{page.Name, page.Email, page.Org, page.Password} {
			if f.Error != "" {
				return h.refuseScript(w, r, reason.Refuse(reason.InputInvalid, "%s", f.Error))
			}
		}
	}
	p, err := h.person(r.Context(), s.link.UserID, page.Email.Value, page.Name.Value)
	if err != nil {
		return err
	}
	if s.welcome() {
		p.id = store.NewID[store.UserKind](h.c.Now())
	}
	return h.askToCreate(w, r, p)
}

// use spends the link and signs in who did. From here on the browser's leaving hides nothing.
func (h *Handler) use(w http.ResponseWriter, r *http.Request, s setup, in store.Setup) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), wholeTime)
	defer cancel()
	user, err := h.c.DB.System().UseLink(ctx, s.token, in)
	if err != nil {
		return fmt.Errorf("use one-time link: %w", err)
	}
	orgs, err := h.c.DB.System().Memberships(ctx, user)
	if err != nil {
		return fmt.Errorf("load memberships of %s: %w", user, err)
	}
	if len(orgs) == 0 {
		return errors.New("the user of a one-time link is a member nowhere")
	}
	flash, set, by := "Your password is set. You are signed in.", "password", proof{password: in.Password}
	if in.Passkey != nil {
		flash, set, by.passkey = "Your passkey is set. You are signed in.", "passkey", in.Passkey.ID
	}
	if in.Passkey != nil && in.Password != "" {
		flash, set = "Your passkey and password are set. You are signed in.", "passkey and a password"
	}
	if s.welcome() {
		flash = orgs[0].OrgName + " is ready. You are its owner."
		h.recordAs(ctx, newViewer(user, orgs[0]).caller, "Founded organisation %s", orgs[0].OrgName)
	}
	for _, o := range orgs { // it is the way into each of them
		h.recordAs(ctx, newViewer(user, o).caller, "Set a %s by a one-time link", set)
	}
	if err := h.begin(ctx, w, r, user, by, orgs[0].Org, flash); err != nil {
		return fmt.Errorf("sign in by a one-time link: %w", err)
	}
	h.recordAs(ctx, newViewer(user, orgs[0]).caller, "Signed in%s", by.with())
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// fillSetup takes what was typed into the page and says beside each field what is wrong with it. It returns how many
// fields are wrong. byKey says that a passkey is set, which a password may be left out beside.
func fillSetup(page *web.Setup, r *http.Request, password string, byKey bool) int {
	typed := func(name string) string { return strings.TrimSpace(r.PostForm.Get(name)) }
	wrong := 0
	take := func(f *web.Field, value string, err error) {
		f.Value = value
		if err != nil {
			f.Error = reason.Of(err).Message
			wrong++
		}
	}
	if page.Welcome || page.AskName {
		name := typed("name")
		take(&page.Name, name, store.CheckName("name", name, 80))
	}
	if page.Welcome {
		email, org := typed("email"), typed("organisation")
		take(&page.Email, email, store.CheckEmail(store.FoldEmail(email)))
		take(&page.Org, org, store.CheckName("organisation", org, 80))
	}
	if byKey && password == "" {
		return wrong
	}
	local, _, _ := strings.Cut(page.Email.Value, "@")
	page.Password.Error = checkPassword(password, page.Email.Value, local, page.Name.Value, page.Org.Value, page.OrgName)
	if page.Password.Error != "" {
		wrong++
	}
	return wrong
}

func anotherLook(n int) string {
	if n == 1 {
		return "One answer needs another look."
	}
	return fmt.Sprintf("%s answers need another look.", []string{2: "Two", 3: "Three", 4: "Four"}[n])
}
