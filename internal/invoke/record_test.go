package invoke

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/audit"
	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// Where the log takes no more, a read is not answered. A write that was carried out is: its intent was written down, and
// an agent told to call again would carry it out twice.
func TestAWriteThatRanIsAnsweredThoughItsOutcomeIsNotWrittenDown(t *testing.T) {
	t.Parallel()
	w := audit.New(audit.Config{DB: &store.DB{}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	ended, end := context.WithCancel(t.Context())
	end()
	w.Run(ended) // takes no more
	var log strings.Builder
	i := &Invoker{c: Config{Audit: w, Now: time.Now, Log: slog.New(slog.NewTextHandler(io.Writer(&log), nil))}}
	org := store.NewID[store.OrgKind](time.Now())
	for _, tt := range []struct {
		name          string
		ran, readOnly bool
		answered      bool
	}{
		{"a write that ran", true, false, true},
		{"a read that ran", true, true, false},
		{"a write that did not run", false, false, false},
	} {
		a := i.attempt(Call{Caller: store.Caller{Org: org}, Tool: "x__y"})
		a.entry = &catalog.Entry{Tool: catalog.Tool{Vendor: "x", Name: "y", ReadOnly: tt.readOnly}}
		a.ran = tt.ran
		result, err := a.record(jsontext.Value(`{"content":[]}`), nil)
		if (err == nil) != tt.answered || (result != nil) != tt.answered {
			t.Errorf("%s = %s, %v, want answered %v", tt.name, result, err, tt.answered)
		}
		if !tt.answered && reason.Of(err).Word != reason.Unavailable {
			t.Errorf("%s: %v, want unavailable", tt.name, err)
		}
	}
	if n := strings.Count(log.String(), "outcome of a call not written down"); n != 1 {
		t.Errorf("the log says it %d times, want once:\n%s", n, log.String())
	}
}
