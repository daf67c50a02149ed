package web

import (
	"strconv"
	"time"
)

// Settings is a person's own account.
type Settings struct {
	Shell       Shell
	Now         time.Time
	Name        Field
	Email       string
	HasPassword bool
	Passkeys    []Passkey
	CanAdd      bool   // passkeys work at the address that the page came from
	Address     string // where they do, if it is another
	SignOn      string // the provider that one may sign in at; "" is none
	Identities  []Identity
	Sessions    []BrowserSession
}

// Passkey is one that a person signs in with.
type Passkey struct {
	Name   string
	URL    string // its page
	MadeAt time.Time
	UsedAt time.Time // zero: not yet
}

// BrowserSession is a browser that a person is signed in with.
type BrowserSession struct {
	URL     string
	Browser string // Firefox on Linux
	Address string // "" where it is not known
	BeganAt time.Time
	SeenAt  time.Time
	This    bool // the page is shown in it
}

// dot marks the session that the page is shown in.
func (s BrowserSession) dot() string {
	if s.This {
		return "live"
	}
	return "off"
}

// others is how many sessions beside this one there are.
func (v Settings) others() int {
	n := 0
	for _, s := range v.Sessions {
		if !s.This {
			n++
		}
	}
	return n
}

// passwordless says how somebody signs in who has no password.
func (v Settings) passwordless() string {
	with := "a passkey alone"
	if v.signsOn() {
		with = shown(v.SignOn) + " alone"
		if len(v.Passkeys) > 0 {
			with = "a passkey or " + shown(v.SignOn)
		}
	}
	return "You have none, and sign in with " + with + "."
}

// signsOn says whether there is an identity that signs in.
func (v Settings) signsOn() bool {
	for _, i := range v.Identities {
		if !i.Elsewhere {
			return true
		}
	}
	return false
}

func (v Settings) passwordVerb() string {
	if v.HasPassword {
		return "Change password"
	}
	return "Set a password"
}

// SettingsPassword sets a new password.
type SettingsPassword struct {
	Shell    Shell
	Password Field
}

// PasskeyNew makes a passkey.
type PasskeyNew struct {
	Shell   Shell
	Name    Field
	Error   string
	Works   bool   // passkeys work at the address that the page came from
	Address string // where they do, if it is another
}

// PasskeyRename gives a passkey another name.
type PasskeyRename struct {
	Shell   Shell
	Passkey Passkey
	Name    Field
}

// PasskeyRemove is the question before a passkey is removed, or why it stays.
type PasskeyRemove struct {
	Shell   Shell
	Passkey Passkey
	Only    bool // it is the only way that the person signs in
}

func (v PasskeyRemove) question() confirm {
	name := shown(v.Passkey.Name)
	return confirm{
		ID: "remove", Question: "Remove " + name + "?", Ends: []string{"Signing in with " + name + ". Its device may go on listing it: remove it there too."},
		Stays: "Sessions that it began. End them on Settings if the device is not yours any more.", Action: v.Passkey.URL + "/remove", Verb: "Remove " + name, Keep: "Keep it", Back: "/settings",
	}
}

// SessionEnd is the question before a session ends.
type SessionEnd struct {
	Shell   Shell
	Session BrowserSession
}

func (v SessionEnd) question() confirm {
	where := shown(v.Session.Browser)
	if v.Session.Address != "" {
		where += ", " + shown(v.Session.Address)
	}
	return confirm{
		ID: "end", Question: "End the session of " + shown(v.Session.Browser) + "?", Ends: []string{"The session of " + where + ". Whoever uses it has to sign in again."},
		Stays: "This session, and your agents.", Action: v.Session.URL + "/end", Verb: "End it", Keep: "Keep it", Back: "/settings",
	}
}

// SessionsEnd is the question before all sessions but this one end.
type SessionsEnd struct {
	Shell  Shell
	Others int
}

func (v SessionsEnd) question() confirm {
	ends := "No other session is open."
	switch {
	case v.Others == 1:
		ends = "1 other session. Whoever uses it has to sign in again."
	case v.Others > 1:
		ends = strconv.Itoa(v.Others) + " other sessions. Whoever uses them has to sign in again."
	}
	return confirm{
		ID: "end", Question: "End all other sessions?", Ends: []string{ends},
		Stays: "This session, and your agents.", Action: "/settings/sessions/end", Verb: "End all others", Keep: "Keep them", Back: "/settings",
	}
}
