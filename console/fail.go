package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/web"
)

// NotFound is the screen of a path that leads nowhere.
func (h *Handler) NotFound(http.ResponseWriter, *http.Request) error { return reason.NotFound }

// Fail draws the page of an error. One that is no refusal is told as an error of ours, and it is logged here, once,
// under the request id that the page shows.
func (h *Handler) Fail(w http.ResponseWriter, r *http.Request, err error) {
	ctx := r.Context()
	if there := whileThere(r).Context(); there.Err() != nil && errors.Is(err, there.Err()) {
		return // the browser left
	}
	ref, id := reason.Of(err), h.c.RequestID(ctx)
	switch ref.Word {
	case reason.Internal:
		h.c.Log.ErrorContext(ctx, "page failed", slog.Any("err", err), slog.String("request_id", id))
	case reason.Unavailable:
		h.c.Log.WarnContext(ctx, "page unavailable", slog.Any("err", err), slog.String("request_id", id))
	}
	if err := h.drawFailure(w, r, ref, id); err != nil {
		h.c.Log.ErrorContext(ctx, "failure not drawn", slog.Any("err", err), slog.String("request_id", id))
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
	}
}

func (h *Handler) drawFailure(w http.ResponseWriter, r *http.Request, ref *reason.Refusal, id string) error {
	switch ref.Word {
	case reason.LinkNotValid:
		return h.draw(w, r, ref.Status(), web.LinkDead{Focus: h.focus()}.Page())
	case reason.NotFoundWord:
		return h.draw(w, r, ref.Status(), web.NotFound{Shell: h.failShell(r.Context(), ref), Focus: h.focus()}.Page())
	}
	message := ref.Message
	if wait := w.Header().Get("Retry-After"); ref.Word == reason.RateLimited && wait != "" {
		message = "Try again in " + wait + " seconds." // a browser shows no header
	}
	return h.draw(w, r, ref.Status(), web.Failure{
		Shell: h.failShell(r.Context(), ref), Focus: h.focus(),
		Status: ref.Status(), Title: failTitle(ref.Word), Message: message, RequestID: id,
	}.Page())
}

// failShell is the frame of an error's page, or none where nobody is signed in. On a path that does not ask who it is
// the session is looked up, but not where the error is ours: then the database may be what failed.
func (h *Handler) failShell(ctx context.Context, ref *reason.Refusal) web.Shell {
	if v, ok := ctx.Value(viewerKey{}).(viewer); ok {
		return v.frame("")
	}
	if _, loaded := cookieOf(ctx); !loaded || ref.Status() >= http.StatusInternalServerError {
		return web.Shell{}
	}
	v, ok, err := h.lookUp(ctx)
	if err != nil || !ok {
		return web.Shell{}
	}
	return v.frame("")
}

func failTitle(w reason.Word) string {
	switch w {
	case reason.Forbidden:
		return "Your role does not allow it"
	case reason.RateLimited:
		return "Too many attempts"
	case reason.ClientNotProven:
		return "This app cannot be connected"
	case reason.ConsentNotValid:
		return "This request has ended"
	case reason.ConsentElsewhere:
		return "This belongs to another page"
	case reason.Unavailable:
		return "Graft cannot answer just now"
	case reason.TooLarge:
		return "That is too large"
	case reason.HostNotAllowed, reason.OriginNotAllowed:
		return "That came from elsewhere"
	case reason.Internal:
		return "Something went wrong"
	}
	return "That did not work"
}
