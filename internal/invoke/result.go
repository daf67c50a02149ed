package invoke

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// window is how many characters of a stored result are answered at once: as JSON text inside an answer it stays below
// MaxResult unless most of it has to be escaped.
const window = 30_000

// A Window is a part of a stored result.
type Window struct {
	Ref        string `json:"ref"`
	Offset     int    `json:"offset"` // in characters
	Text       string `json:"text"`   // of the result's JSON
	NextOffset int    `json:"nextOffset,omitzero"`
	Total      int    `json:"total"` // characters of the whole
}

// ReadResult reads a stored result of the caller's agent from offset on, in characters. One that is not there, or no
// longer, is reason.ResultNotFound; an offset beyond its end is reason.InputInvalid.
func (i *Invoker) ReadResult(ctx context.Context, c store.Caller, ref string, offset int) (Window, error) {
	missing := reason.Refuse(reason.ResultNotFound, "There is no stored result under that reference. They are kept for 24 hours; call the tool again.")
	id, err := store.ParseID[store.ResultKind](ref)
	if err != nil {
		return Window{}, missing
	}
	box, err := i.c.Keys.Box(ctx, c.Org.String(), runBox)
	if err != nil {
		return Window{}, err
	}
	var sealed []byte
	err = i.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		sealed, err = tx.Result(ctx, c.Agent, id)
		return err
	})
	if store.IsAbsent(err) {
		return Window{}, missing
	}
	if err != nil {
		return Window{}, err
	}
	text, err := box.Open([]byte(id.String()), sealed)
	if err != nil {
		return Window{}, fmt.Errorf("open %s: %w", id, err)
	}
	w := Window{Ref: ref, Offset: offset, Total: utf8.RuneCount(text)}
	if offset > w.Total {
		return Window{}, reason.Refuse(reason.InputInvalid, "The result has %d characters; offset %d is beyond its end.", w.Total, offset).Field("offset")
	}
	begin := skip(text, offset)
	end := begin + skip(text[begin:], window)
	if w.Text = string(text[begin:end]); end < len(text) {
		w.NextOffset = offset + window
	}
	return w, nil
}

// skip is how many bytes the first n characters take.
func skip(text []byte, n int) int {
	at := 0
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at
}
