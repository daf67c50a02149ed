package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/getgraft/graft/internal/store"
)

// SweepWorkingSets is the periodic work that takes idle tools, and never-used ones above the cap, out of every agent's
// working set: one organisation after another, in transactions of a bounded size.
func SweepWorkingSets(db *store.DB) func(context.Context) error {
	return func(ctx context.Context) error {
		orgs, err := db.System().AllOrganisations(ctx)
		if err != nil {
			return fmt.Errorf("sweep working sets: %w", err)
		}
		var failed []error
		for _, org := range orgs { // one that fails holds up none of those behind it
			if err := sweepOne(ctx, db, org); err != nil {
				failed = append(failed, fmt.Errorf("sweep working sets of %s: %w", org, err))
			}
			if ctx.Err() != nil {
				break
			}
		}
		return errors.Join(failed...)
	}
}

func sweepOne(ctx context.Context, db *store.DB, org store.OrgID) error {
	c := store.Caller{Org: org, Role: store.RoleOwner, Via: store.ViaJob}
	for swept := 1; swept > 0; {
		err := db.As(ctx, c, func(tx *store.Tx) (err error) {
			swept, err = tx.SweepWorkingSets(ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
