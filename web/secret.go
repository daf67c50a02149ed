package web

import "time"

// Secrets is the organisation's secrets: what ${NAME} means in an upstream's
// headers. Of a secret only its name and who set it is ever drawn.
type Secrets struct {
	Rows   []OrgSecret
	Name   Field
	Secret Field // its Value is never filled in
	Error  string
}

// OrgSecret is one of them.
type OrgSecret struct {
	Name   string
	URL    string   // its acts are below it
	UsedBy []string // the upstreams whose headers name it
	SetBy  string   // "you", or a name
	SetAt  time.Time
}

func (s OrgSecret) users() string {
	if len(s.UsedBy) == 0 {
		return "no upstream"
	}
	return names(s.UsedBy)
}

// SecretRemove is the question before a secret is removed.
type SecretRemove struct {
	Shell  Shell
	Secret OrgSecret
}

func (v SecretRemove) question() confirm {
	var ends []string
	for _, name := range v.Secret.UsedBy {
		ends = append(ends, "New connections to "+shown(name)+": its headers name this secret")
	}
	return confirm{
		ID:       "remove",
		Question: "Remove " + shown(v.Secret.Name) + "?",
		Ends:     append(ends, "The secret itself: nobody can read it back"),
		Stays:    "Stays: the upstreams, and every past call in Activity",
		Action:   v.Secret.URL + "/remove",
		Verb:     "Remove " + shown(v.Secret.Name),
		Keep:     "Keep it",
		Back:     "/upstreams",
	}
}
