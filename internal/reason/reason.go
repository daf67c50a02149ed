package reason

import (
	"errors"
	"fmt"
	"net/http"
)

// A Word names why something was refused. Clients branch on it, people read the message beside it.
type Word string

// A Refusal is an error whose text its reader may see: the word, one sentence that says what to do next, and
// details that a program can use (field names, candidates, a link).
type Refusal struct {
	Word    Word
	Message string
	// Details are added to the answer beside error, reason and message. Nil for most.
	Details map[string]any
}

// NotFound is what the store answers for a row that is missing and for a row of another organisation. The two
// are never told apart.
var NotFound = &Refusal{Word: NotFoundWord, Message: "It does not exist, or it belongs to someone else."}

// Refuse makes a refusal with a formatted message.
func Refuse(w Word, format string, args ...any) *Refusal {
	return &Refusal{Word: w, Message: fmt.Sprintf(format, args...)}
}

// With returns a copy of r that carries one more detail.
func (r *Refusal) With(key string, value any) *Refusal {
	c := *r
	c.Details = make(map[string]any, len(r.Details)+1)
	for k, v := range r.Details {
		c.Details[k] = v
	}
	c.Details[key] = value
	return &c
}

// Field says which input a refusal is about, for forms and for agents alike.
func (r *Refusal) Field(name string) *Refusal { return r.With("field", name) }

// Error implements error.
func (r *Refusal) Error() string { return string(r.Word) + ": " + r.Message }

// Is reports two refusals with the same word as the same, so that errors.Is(err, reason.NotFound) holds for a
// refusal made with a message of its own.
func (r *Refusal) Is(target error) bool {
	var t *Refusal
	return errors.As(target, &t) && t.Word == r.Word
}

// Status is the HTTP status of the refusal where it is the whole answer. Inside a tool result it is not used.
func (r *Refusal) Status() int { return r.Word.Status() }

// Status is the HTTP status that goes with a word, or 500 for a word that is not in the table.
func (w Word) Status() int {
	if e, ok := byWord[w]; ok {
		return e.Status
	}
	return http.StatusInternalServerError
}

// Of returns the refusal inside err. An err that holds none is Internal, its own text withheld.
func Of(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return &Refusal{Word: Internal, Message: "Something went wrong on our side. The request id finds it in the log."}
}
