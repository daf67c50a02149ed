package web

// AgentScope is the page that says which connections an agent may use.
type AgentScope struct {
	Shell   Shell
	Agent   Agent
	All     bool
	Choices []ScopeChoice
	Change  bool
}

// ScopeChoice is one connection that an agent may be given.
type ScopeChoice struct {
	ID         string
	Connection Connection
	On         bool
}

// scope is which connections an agent may use, in words.
func (v AgentDetail) scope() string {
	if v.ScopeAll {
		return "All that there are"
	}
	return plural(v.Connections, "connection")
}
