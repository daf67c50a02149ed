package servertest

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/connect"
	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// Through is a source of two tools that each send one request through a connection: through__read, and through__write, which
// may change things. Desk is set once the kit has started.
type Through struct{ desk atomic.Pointer[connect.Desk] }

// Set gives it the desk that it sends through.
func (s *Through) Set(d *connect.Desk) { s.desk.Store(d) }

const throughSchema = `{"type":"object","properties":{"connectionId":{"type":"string"},"url":{"type":"string"},"method":{"type":"string"},` +
	`"body":{"type":"string"},"follow":{"type":"integer"}},"required":["connectionId","url"]}`

// Tools implements catalog.Source.
func (s *Through) Tools(context.Context, store.Caller) ([]catalog.Tool, error) {
	tool := catalog.Tool{Vendor: "through", Kind: catalog.KindAuthored, Version: 1, InputSchema: jsontext.Value(throughSchema)}
	read, write := tool, tool
	read.Name, read.Description, read.ReadOnly = "read", "Reads through a connection.", true
	write.Name, write.Description, write.Destructive = "write", "Writes through a connection.", true
	return []catalog.Tool{read, write}, nil
}

// Run implements catalog.Source. Its value is the vendor's answer: {status, header, body}.
func (s *Through) Run(ctx context.Context, r catalog.Run) (catalog.Output, error) {
	var in struct {
		ConnectionID, URL, Method, Body string
		Follow                          int
	}
	if err := json.Unmarshal(r.Args, &in); err != nil {
		return catalog.Output{}, err
	}
	id, err := store.ParseID[store.ConnectionKind](in.ConnectionID)
	if err != nil {
		return catalog.Output{}, reason.Refuse(reason.ConnectionAbsent, "There is no connection %q.", in.ConnectionID)
	}
	answer, err := s.desk.Load().Send(ctx, r.Caller, id, egress.Request{Method: in.Method, URL: in.URL, Body: []byte(in.Body), Follow: in.Follow})
	if err != nil {
		return catalog.Output{}, err
	}
	value, err := json.Marshal(struct {
		Status int         `json:"status"`
		Header http.Header `json:"header"`
		Body   string      `json:"body"`
	}{answer.Status, answer.Header, string(answer.Body)})
	return catalog.Output{Value: value}, err
}
