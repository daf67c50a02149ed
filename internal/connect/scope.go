package connect

import (
	"context"

	"github.com/getgraft/graft/internal/bus"
	"github.com/getgraft/graft/internal/store"
)

// maxKnown bounds the agents whose connections a replica remembers.
const maxKnown = 20_000

// Of lists the connections to vendors that an agent may use, revoked ones among them. It is what the bus says it still is.
func (d *Desk) Of(ctx context.Context, c store.Caller) ([]store.Connection, error) {
	return d.known.Get(ctx, c.Agent, func(ctx context.Context) (list []store.Connection, err error) {
		err = d.c.DB.As(ctx, c, func(tx *store.Tx) error {
			rows, err := tx.AgentConnections(ctx, c.Agent)
			list = list[:0] // this may run again
			for _, row := range rows {
				if row.UpstreamID.IsZero() { // an upstream's is the upstream's own affair
					list = append(list, row)
				}
			}
			return err
		})
		return list, err
	})
}

// Hear implements bus.Listener.
func (d *Desk) Hear(e bus.Event) {
	switch e.Topic {
	case bus.Agent, bus.Revoked:
		if agent, err := store.ParseID[store.AgentKind](e.ID); err == nil {
			d.known.Forget(agent)
		}
	case bus.Tools, bus.Member:
		d.known.Reset()
	}
}

// Reset implements bus.Listener.
func (d *Desk) Reset() { d.known.Reset() }
