package mcp_test

import (
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// A change of the list that the bus lost is told once the bus is back: a client reads its list again only when told.
func TestAListThatMovedUnheardIsToldLater(t *testing.T) {
	t.Parallel()
	var line *storetest.Line
	k := servertest.Start(t, servertest.Options{Replicas: 1, DirectURL: func(dsn string) string {
		line = storetest.NewLine(t, dsn)
		return line.DSN
	}})
	agent, token := k.Agent(t)
	c := &client{t: t, url: k.URL + "/mcp", token: token}
	c.open("2025-11-25")
	l := c.listen()
	line.Stall()
	err := k.DB.As(t.Context(), k.Owner, func(tx *store.Tx) error {
		_, err := tx.Promote(t.Context(), agent.ID, "builtin__reshape")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the bus gave the line up", func() bool { return strings.Contains(k.Log.String(), "bus cut") })
	line.Flow()
	l.wait(listChanged)
}
