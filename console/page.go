package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/a-h/templ"

	"github.com/getgraft/graft/internal/reason"
)

// draw answers with a page. Nothing is sent before it is whole. It is drawn also for a request that has ended: one whose
// body did not arrive in time may still read why.
func (h *Handler) draw(w http.ResponseWriter, r *http.Request, status int, page templ.Component) error {
	var b bytes.Buffer
	if err := page.Render(context.WithoutCancel(r.Context()), &b); err != nil {
		return fmt.Errorf("draw page: %w", err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if _, err := w.Write(b.Bytes()); err != nil {
		h.c.Log.DebugContext(r.Context(), "browser left", slog.Any("err", err))
	}
	return nil
}

// readForm reads a posted form; the server has capped its size.
func readForm(r *http.Request) error {
	err := r.ParseForm()
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return reason.Refuse(reason.TooLarge, "The form is larger than %d KiB.", large.Limit>>10)
	case err != nil:
		return reason.Refuse(reason.RequestInvalid, "The form could not be read. Go back and send it again.")
	}
	return nil
}
