package audit

// The outcomes of a call beside the reason words of refusals. An intent has none.
const (
	OK     = "ok"
	Failed = "error"          // the tool ran, and says itself that it failed
	Asked  = "input_required" // the tool has a question, and the call is made again with the answer
)
