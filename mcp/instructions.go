package mcp

import "strings"

// maxInstructions is how many characters of instructions a client is sure to show its model.
const maxInstructions = 1800

// A sentence is told when everything it needs is served.
type sentence struct {
	needs []string // tools it names, and features such as asks
	text  string
}

// Features that sentences need beside tools.
const (
	featureAsks      = "asks"      // a person can be asked for something
	featureAuthoring = "authoring" // the tools to author by hand are listed
)

// topics are the playbook: the order of operations, handoffs, secrets, snapshotted lists, approvals. The order
// stands first, inside the first 512 characters, because some clients cut there.
var topics = [][]sentence{
	{
		{[]string{"find_tool"}, "Order of work: when a task has no fitting tool in the list, call find_tool first."},
		{[]string{"find_tool", "promote"}, "A match that is not promoted: promote it if you will need it again, rather than make another."},
		{[]string{"request_connection"}, "Call request_connection when the vendor has no connection in scope."},
		{[]string{"acquire", "acquire_status"}, "Call acquire only when nothing fits, then acquire_status, and tell the person each new progress line in one sentence. " +
			"Never start a second acquire for the same goal."},
		{[]string{featureAuthoring}, "Never use the authoring tools unless the person asked you to author a tool by hand."},
	},
	{
		{[]string{featureAsks}, "Handoffs: an answer with a url and an awaiting_ word is the person's to finish. Give them the link exactly as returned, say what it is for " +
			"and wait; then call the same tool again with the same arguments."},
	},
	{
		{nil, "Secrets: never ask for an API key, a password or a token in chat, whatever the vendor calls it."},
		{[]string{"request_connection"}, "A secret goes into Graft's own form; you never see one."},
	},
	{
		{[]string{"run_tool", "promote"}, "If your tool list was read once and lacks a tool you just promoted, call run_tool with vendor, name and input until the list refreshes."},
	},
	{
		{[]string{featureAsks}, "Approvals: a read-only tool never asks. Any other tool asks once and the answer holds; the person can set a tool to ask every time."},
		{[]string{featureAsks, "acquire"}, "acquire asks once per agent per connection."},
	},
}

// instructions are the sentences whose needs are all served, a paragraph a topic.
func instructions(served map[string]bool) string {
	var paragraphs []string
	for _, topic := range topics {
		var said []string
		for _, s := range topic {
			if s.fits(served) {
				said = append(said, s.text)
			}
		}
		if len(said) > 0 {
			paragraphs = append(paragraphs, strings.Join(said, " "))
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

func (s sentence) fits(served map[string]bool) bool {
	for _, n := range s.needs {
		if !served[n] {
			return false
		}
	}
	return true
}
