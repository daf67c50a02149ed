package web

// Home is the first page of the console.
type Home struct {
	Shell   Shell
	Name    string // the person's; "" greets nobody by name
	Gateway string // the address clients are given: https://graft.example.org/mcp
	Agents  AgentList
	Asks    AskList    // what waits for the person; it may be cut to the first few
	Waiting int        // how many there are
	Failing []Upstream // what cannot be reached
}

// greeting is the page's heading.
func (v Home) greeting() string {
	if v.Name == "" {
		return "Home"
	}
	return "Hello, " + shown(v.Name)
}
