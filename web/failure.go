package web

// Failure is the page of a request that could not be answered.
type Failure struct {
	Shell     Shell // drawn where somebody is signed in
	Focus     Focus // else this
	Status    int   // HTTP
	Title     string
	Message   string // what happened, then what next
	RequestID string // to find it in the log; "" shows none
}

// NotFound is the page of what is not there, or is another organisation's: the
// two are one answer.
type NotFound struct {
	Shell Shell // drawn where somebody is signed in
	Focus Focus // else this
}
