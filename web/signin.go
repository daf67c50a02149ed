package web

// passwordLength is the fewest characters that a form lets a password have.
const passwordLength = 12

// SignIn is the page that asks who it is.
type SignIn struct {
	Focus   Focus
	OrgName string // "" where there are several
	Email   string // what was typed
	Error   string // why it was not taken, and what to do
	Next    string // where to go after; "" is Home
	// Passkeys offers to sign in with one.
	Passkeys bool
	SignOn   string // the provider that one may sign in at; "" is none
}

// Setup is what a one-time link opens: one form, whose POST signs in. Looking at
// it uses nothing up.
type Setup struct {
	Focus    Focus
	Action   string // the link's own path
	Welcome  bool   // the first person here: asks for e-mail and organisation too
	OrgName  string // whose link it is; not with Welcome
	AskName  bool   // the person's name is not known yet
	Email    Field
	Name     Field
	Org      Field
	Password Field
	Passkeys bool   // offers to set one
	Error    string // of the whole form
}

// LinkDead is what a one-time link opens once it has been used, or is too old.
type LinkDead struct {
	Focus Focus
}

// Confirm is the page that asks somebody who is signed in whether it is still
// them, before they destroy something.
type Confirm struct {
	Focus    Focus
	Email    string
	Next     string // where to go after
	Password bool   // they have one
	Passkeys bool   // they have one, and it works here
	SignOn   string // the provider that they sign in at, where there is no other way; else ""
	Error    string // why what they gave was not taken
}
