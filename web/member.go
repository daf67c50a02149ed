package web

import (
	"strings"
	"time"
)

// Member is what lists and heads say of one member of the organisation.
type Member struct {
	Name     string // their e-mail while they have none
	Email    string
	URL      string // of their page; its acts are below it
	You      bool
	Role     string
	Since    time.Time
	SignedIn time.Time // the last time; zero: not known
	Agents   int       // live ones
}

// title is the member's name as a page's.
func (m Member) title() string { return shown(m.Name) }

// about stands under the name: the address, where that is not the name.
func (m Member) about() string {
	var words []string
	if m.Email != m.Name {
		words = append(words, shown(m.Email))
	}
	if m.You {
		words = append(words, "you")
	}
	return strings.Join(words, ", ")
}

// Members is the page of everybody in the organisation.
type Members struct {
	Shell   Shell
	Now     time.Time
	Rows    []Member
	Invites []Invite // open ones; nil where the person may not see them
	See     bool     // the person sees the invites
	Change  bool     // the person may invite
	Roles   []Choice // that they may give
	Email   Field
	Role    Field
	Error   string
	Made    *NewInvite // the invite just made
}

// Invite is one that is open.
type Invite struct {
	Email     string
	Role      string
	URL       string // its acts are below it
	MadeBy    string // "you", or a name
	MadeAt    time.Time
	ExpiresAt time.Time
	Change    bool // the person may withdraw it
}

// NewInvite is one just made, with its link, which is on no later page.
type NewInvite struct {
	Email string
	Role  string
	Link  string
}

// MemberDetail is the page of one member.
type MemberDetail struct {
	Shell  Shell
	Now    time.Time
	Org    string
	Member Member
	Roles  []Choice // that the person may give; none: they change nothing here
	Role   Field    // what was chosen, and what was wrong with it
}

// chosen is the role that is ticked.
func (v MemberDetail) chosen() string {
	if v.Role.Value != "" {
		return v.Role.Value
	}
	return v.Member.Role
}

// MemberRemove is the question before somebody is removed, as a page.
type MemberRemove struct {
	Shell   Shell
	Org     string
	Member  Member
	Agents  int
	Apps    int // that are connected by their consent, or as their agents
	Invites int // open ones that they made
}

func (v MemberRemove) question() confirm {
	who, name := v.Member.title(), v.Member.title()
	access := "Their access to " + shown(v.Org) + ": every page of it that they have open"
	stays := "Stays: their past calls and changes in Activity. A new invite brings them back, without their agents"
	if v.Member.You {
		who, access = "yourself", "Your access to "+shown(v.Org)+": every page of it that you have open"
		stays = "Stays: your past calls and changes in Activity. A new invite brings you back, without your agents"
	}
	var ends []string
	if v.Agents > 0 {
		ends = append(ends, plural(v.Agents, "agent")+", with tokens, sessions and open streams")
	}
	if v.Apps > 0 {
		ends = append(ends, plural(v.Apps, "connected app"))
	}
	if v.Invites > 0 {
		ends = append(ends, plural(v.Invites, "open invite")+" made by "+name)
	}
	return confirm{
		ID:       "remove",
		Question: "Remove " + who + " from " + shown(v.Org) + "?",
		Ends:     append(ends, access),
		Stays:    stays,
		Action:   v.Member.URL + "/remove",
		Verb:     "Remove " + who,
		Keep:     "Keep everything as it is",
		Back:     v.Member.URL,
	}
}

// roleWords says what each role may do.
func roleWords(role string) string {
	switch role {
	case "owner":
		return "Everything, also who is an owner."
	case "admin":
		return "All agents, upstreams, secrets and members, but no owner."
	case "member":
		return "Makes agents of their own and answers for them."
	case "auditor":
		return "Reads everything and changes nothing."
	}
	return ""
}

// yourRole is roleWords to whoever gets it.
func yourRole(role string) string {
	switch role {
	case "owner":
		return "You may do everything there."
	case "admin":
		return "You manage all its agents, upstreams, secrets and members."
	case "member":
		return "You make agents of your own and answer for them."
	case "auditor":
		return "You read everything and change nothing."
	}
	return ""
}

// Join is what the link of an invite opens. Looking at it uses nothing up.
type Join struct {
	Focus    Focus
	Action   string // the link's own path
	OrgName  string
	MadeBy   string
	Role     string
	Email    Field  // of the invite
	As       string // who is signed in in this browser; "" is nobody
	Known    bool   // the address has an account, whose password is asked for
	Name     Field
	Password Field
	SignOn   string // the provider that one may join with; "" is none
	Error    string
}

// another says whether the invite is for somebody else than who is signed in.
func (v Join) another() bool { return v.As != "" && v.As != v.Email.Value }

// signIn is the way to sign in first, and back.
func (v Join) signIn() string { return "/signin?next=" + v.Action }

// InviteDead is what the link of an invite opens once it has been used or
// withdrawn, or is too old.
type InviteDead struct {
	Focus Focus
}
