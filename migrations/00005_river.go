package migrations

import (
	"context"
	"database/sql"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverSchema is the version of river's own schema that 00005 brings. A newer river gets a migration of its own.
const riverSchema = 8

// riverGrants lets graft_system work the queue. graft_app may put in jobs of its own organisation, which stands in
// their metadata, and sees no other: a job is put in by the transaction that it belongs to.
const riverGrants = `
GRANT SELECT, INSERT, UPDATE, DELETE ON river_job, river_leader, river_queue, river_notification TO graft_system;
GRANT USAGE ON SEQUENCE river_job_id_seq, river_notification_id_seq TO graft_system;
GRANT SELECT, INSERT, UPDATE ON river_job TO graft_app;
GRANT USAGE ON SEQUENCE river_job_id_seq TO graft_app;

ALTER TABLE river_job ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS tenant ON river_job;
CREATE POLICY tenant ON river_job TO graft_app
  USING (metadata ->> 'org' = current_org()::text) WITH CHECK (metadata ->> 'org' = current_org()::text);
DROP POLICY IF EXISTS owner ON river_job;
CREATE POLICY owner ON river_job TO graft_owner USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS system ON river_job;
CREATE POLICY system ON river_job TO graft_system USING (true) WITH CHECK (true);`

// riverUp is 00005. River adds a value to a type and uses it in a later step, which one transaction may not, so its
// steps run in a pool, each in its own. One that was cut short goes on where it stopped.
func riverUp(cfg *pgx.ConnConfig) *goose.Migration {
	return goose.NewGoMigration(5, &goose.GoFunc{RunDB: func(ctx context.Context, _ *sql.DB) error {
		pool, err := ownerPool(ctx, cfg)
		if err != nil {
			return err
		}
		defer pool.Close()
		m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{TargetVersion: riverSchema}); err != nil {
			return err
		}
		_, err = pool.Exec(ctx, riverGrants)
		return err
	}}, nil)
}

// ownerPool acts as graft_owner, as the connections do that the SQL files run on.
func ownerPool(ctx context.Context, cfg *pgx.ConnConfig) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, err
	}
	c.ConnConfig, c.MaxConns, c.AfterConnect = cfg.Copy(), 2, asOwner
	return pgxpool.NewWithConfig(ctx, c)
}
