package console

import (
	"context"
	"fmt"
	"net/http"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/web"
)

// Home is GET /.
func (h *Handler) Home(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	list, err := h.agentList(ctx, agentQuery{few: true})
	if err != nil {
		return err
	}
	shell, err := h.shell(ctx, atHome)
	if err != nil {
		return err
	}
	page := web.Home{Shell: shell, Name: viewerOf(ctx).name, Gateway: h.gateway(), Agents: list}
	if err := h.whatNeedsSomebody(ctx, &page); err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, page.Page())
}

// asksFew is how many asks stand on Home.
const asksFew = 3

// whatNeedsSomebody puts on Home what waits for the viewer, and what cannot be reached.
func (h *Handler) whatNeedsSomebody(ctx context.Context, page *web.Home) error {
	asks, err := h.askList(ctx)
	if err != nil {
		return err
	}
	page.Waiting = len(asks.Rows)
	asks.Rows, asks.Live = asks.Rows[:min(asksFew, len(asks.Rows))], "" // the inbox is live
	page.Asks = asks
	var list []store.Upstream
	err = h.c.DB.As(ctx, viewerOf(ctx).caller, func(tx *store.Tx) (err error) {
		list, err = tx.Upstreams(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("load upstreams: %w", err)
	}
	for _, u := range list {
		if u.RevokedAt == nil && u.State == store.UpstreamFailing {
			page.Failing = append(page.Failing, webUpstream(u))
		}
	}
	return nil
}
