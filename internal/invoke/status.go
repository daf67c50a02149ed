package invoke

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/vault"
)

// MaxWait bounds how long Status waits for a run to end.
const MaxWait = 20 * time.Second

// lookEvery is how often a run is looked at while somebody waits and the bus may say nothing.
const lookEvery = 2 * time.Second

// A Status is how a run stands.
type Status struct {
	store.Run
	Result jsontext.Value // a CallToolResult; nil while there is none
}

// Status is how a run of the caller's agent stands. It waits up to wait for one that is under way to end; a run that is
// not there is reason.RunNotFound.
func (i *Invoker) Status(ctx context.Context, c store.Caller, id store.RunID, wait time.Duration) (Status, error) {
	moved, done := i.runs.wait(id)
	defer done()
	limited, cancel := context.WithTimeout(ctx, min(wait, MaxWait))
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		s, err := i.status(ctx, c, id)
		if err != nil || s.Status != store.RunRunning {
			return s, err
		}
		select {
		case <-limited.Done():
			return s, nil
		case <-moved:
		case <-tick.C:
		}
	}
}

func (i *Invoker) status(ctx context.Context, c store.Caller, id store.RunID) (s Status, err error) {
	box, err := i.c.Keys.Box(ctx, c.Org.String(), runBox)
	if err != nil {
		return Status{}, err
	}
	err = i.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		s.Run, err = tx.Run(ctx, c.Agent, id)
		return err
	})
	if store.IsAbsent(err) {
		return Status{}, reason.Refuse(reason.RunNotFound, "There is no run %s of this agent. Without an id, run_status lists the last ten.", id)
	}
	if err != nil || s.Run.Result == nil {
		return s, err
	}
	if s.Result, err = box.Open(runPlace(id, "result"), s.Run.Result); err != nil {
		return Status{}, fmt.Errorf("open result of %s: %w", id, err)
	}
	return s, nil
}

// Last lists the last ten runs of the caller's agent, without their results.
func (i *Invoker) Last(ctx context.Context, c store.Caller) (list []store.Run, err error) {
	err = i.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		list, err = tx.Runs(ctx, c.Agent, 10)
		return err
	})
	return list, err
}

// Cancel asks for a run of the caller's agent to end, and reports whether it was under way.
func (i *Invoker) Cancel(ctx context.Context, c store.Caller, id store.RunID) (running bool, err error) {
	err = i.c.DB.As(ctx, c, func(tx *store.Tx) (err error) {
		running, err = tx.CancelRun(ctx, c.Agent, id)
		return err
	})
	return running, err
}

// runBox is the purpose of the key that runs are sealed under.
const runBox = "run"

func (a *attempt) box(ctx context.Context) (*vault.Box, error) {
	return a.c.Keys.Box(ctx, a.call.Caller.Org.String(), runBox)
}

func runPlace(id store.RunID, column string) []byte { return []byte(id.String() + " " + column) }

// maxProgressLine is how many characters of one line of progress are kept.
const maxProgressLine = 500

func progressLine(p catalog.Progress) string {
	line := strconv.FormatFloat(p.Done, 'f', -1, 64)
	if p.Total > 0 {
		line += "/" + strconv.FormatFloat(p.Total, 'f', -1, 64)
	}
	if p.Message != "" {
		line += " " + p.Message
	}
	if r := []rune(line); len(r) > maxProgressLine {
		line = string(r[:maxProgressLine-1]) + "…"
	}
	return line
}
