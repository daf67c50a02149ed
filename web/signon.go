package web

import "time"

// Identity is who somebody is at the provider that they sign in at.
type Identity struct {
	Name      string
	URL       string // its page
	MadeAt    time.Time
	UsedAt    time.Time // zero: not yet
	Elsewhere bool      // it is of another provider than one may sign in at now
}

// SignOnward goes on to the provider by itself.
type SignOnward struct {
	Focus    Focus
	Provider string
	URL      string // at the provider
}

// frame is the page's, which goes on without scripts too.
func (v SignOnward) frame() Focus {
	f := v.Focus
	f.onward = v.URL
	return f
}

// SignOnFailed is what came of the way to the provider and back, where it did not sign in, and the way on.
type SignOnFailed struct {
	Focus    Focus
	Provider string
	Title    string
	Message  string
	Words    string // of the provider; "" where it has none
	Way      string // the label of the way on
	WayURL   string
}

// IdentityNew binds an identity.
type IdentityNew struct {
	Shell    Shell
	Provider string
	Name     Field
}

// IdentityRename gives an identity another name.
type IdentityRename struct {
	Shell    Shell
	Identity Identity
	Name     Field
}

// IdentityRemove is the question before an identity is removed, or why it stays.
type IdentityRemove struct {
	Shell    Shell
	Provider string
	Identity Identity
	Only     bool // it is the only way that the person signs in
}

func (v IdentityRemove) question() confirm {
	name := shown(v.Identity.Name)
	return confirm{
		ID: "remove", Question: "Remove " + name + "?", Ends: []string{"Signing in here with " + name + ". Your account at " + shown(v.Provider) + " stays as it is."},
		Stays: "Sessions that it began. End them on Settings if they are not yours.", Action: v.Identity.URL + "/remove", Verb: "Remove " + name, Keep: "Keep it", Back: "/settings",
	}
}
