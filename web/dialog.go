package web

// confirm is an act that cannot be undone, asked once more: in a dialog where
// the page is, or as a page of its own.
type confirm struct {
	ID       string   // of the dialog
	Question string   // "Revoke hermes-prod?"
	Ends     []string // what ends, most serious first
	Stays    string   // what stays
	Action   string   // where the answer is posted
	Verb     string   // "Revoke hermes-prod"
	Keep     string   // "Keep it"
	Back     string   // the page to go back to
}
