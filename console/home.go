package console

import (
	"net/http"

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
	return h.draw(w, r, http.StatusOK, web.Home{Shell: shell, Name: viewerOf(ctx).name, Gateway: h.gateway(), Agents: list}.Page())
}
