package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// ErrAuditFork says that a place in a chain is taken by another entry.
var ErrAuditFork = errors.New("the place in the audit chain is taken by another entry")

// runWriter is run for the audit log's writer, on its own connections.
func (s *System) runWriter(ctx context.Context, fn func(pgx.Tx) error) error {
	return s.db.runIn(ctx, s.db.writer, "BEGIN; SET LOCAL ROLE graft_system", fn)
}

// AppendAudit writes links in one transaction and returns once they are durable. Doing it again does nothing, so
// whoever does not know whether it was done does it again. An organisation that is gone is reason.NotFound, and a
// place that holds something else is ErrAuditFork; then nothing is written.
//
// It is on the way of every call with effects: one round trip, one statement.
func (s *System) AppendAudit(ctx context.Context, links []AuditLink) error {
	if len(links) == 0 {
		return nil
	}
	var b pgx.Batch
	b.Queue(`BEGIN`)
	b.Queue(`SET LOCAL ROLE graft_system`)
	b.Queue(appendAudit, auditColumns(links)...)
	b.Queue(`COMMIT`)
	// The pool drops a connection on which the batch failed half way, and Postgres its transaction.
	err := s.db.writer.SendBatch(ctx, &b).Close()
	if code(err) == "23505" { // unique_violation
		return s.written(ctx, links[len(links)-1])
	}
	return unavailable(absent(err))
}

// written is nil where exactly this link is in its place: a batch is there whole or not at all, so one tells of all.
func (s *System) written(ctx context.Context, l AuditLink) error {
	return s.runWriter(ctx, func(tx pgx.Tx) error {
		hash, err := value[[]byte](ctx, tx, `SELECT hash FROM audit_entry WHERE org_id = @org AND writer = @writer AND seq = @seq`,
			pgx.StrictNamedArgs{"org": l.Org, "writer": l.Writer, "seq": l.Seq})
		if err == nil && !bytes.Equal(hash, l.Hash) || IsAbsent(err) {
			return ErrAuditFork
		}
		return err
	})
}

const appendAudit = `
	INSERT INTO audit_entry (org_id, writer, seq, heads, hash, run_id, kind, at, via, agent_id, user_id, tool, version, source, connection_id,
	                         digest, outcome, took, line)
	SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bytea[], $5::bytea[], $6::uuid[], $7::text[], $8::timestamptz[], $9::text[],
	                     $10::uuid[], $11::uuid[], $12::text[], $13::bigint[], $14::text[], $15::uuid[], $16::bytea[], $17::text[], $18::bigint[], $19::text[])`

// auditColumns are links column by column, in the types that are encoded without reflection.
func auditColumns(links []AuditLink) []any {
	n := len(links)
	ids := func() pgtype.FlatArray[pgtype.UUID] { return make([]pgtype.UUID, n) }
	texts := func() pgtype.FlatArray[string] { return make([]string, n) }
	numbers := func() pgtype.FlatArray[int64] { return make([]int64, n) }
	blobs := func() pgtype.FlatArray[[]byte] { return make([][]byte, n) }
	org, writer, run, agent, user, connection := ids(), ids(), ids(), ids(), ids(), ids()
	kind, via, tool, source, outcome, line := texts(), texts(), texts(), texts(), texts(), texts()
	seq, version, took := numbers(), numbers(), numbers()
	heads, hash, digest := blobs(), blobs(), blobs()
	at := make(pgtype.FlatArray[time.Time], n)
	for i := range links {
		l := &links[i]
		org[i], writer[i], run[i] = l.Org.orNull(), l.Writer.orNull(), l.Run.orNull()
		agent[i], user[i], connection[i] = l.Agent.orNull(), l.User.orNull(), l.Connection.orNull()
		kind[i], via[i], tool[i], source[i], outcome[i], line[i] = string(l.Kind), string(l.Via), l.Tool, l.Source, l.Outcome, l.Line
		seq[i], version[i], took[i] = l.Seq, int64(l.Version), l.Took.Microseconds()
		heads[i], hash[i], digest[i] = l.Heads, l.Hash, l.Digest
		at[i] = l.At
	}
	return []any{org, writer, seq, heads, hash, run, kind, at, via, agent, user, tool, version, source, connection, digest, outcome, took, line}
}

// An AuditHead is where a chain stands: its last entry.
type AuditHead struct {
	Org    OrgID
	Writer WriterID
	Seq    int64
	Hash   []byte
	Begins []byte // the heads that the chain's first entry names
}

// AuditHeads lists where the newest chains of some organisations stand, 200 of each at most: those before them are
// named by one of these.
func (s *System) AuditHeads(ctx context.Context, orgs []OrgID) (heads []AuditHead, err error) {
	err = s.runWriter(ctx, func(tx pgx.Tx) (err error) {
		heads, err = all[AuditHead](ctx, tx, `
			SELECT o.id AS org, b.writer, h.seq, h.hash, b.heads AS begins
			FROM unnest(@orgs::uuid[]) AS o (id)
			CROSS JOIN LATERAL (SELECT writer, heads FROM audit_entry WHERE org_id = o.id AND seq = 1 ORDER BY at DESC LIMIT 200) AS b
			CROSS JOIN LATERAL (SELECT seq, hash FROM audit_entry WHERE org_id = o.id AND writer = b.writer ORDER BY seq DESC LIMIT 1) AS h
			ORDER BY o.id, b.writer`, pgx.StrictNamedArgs{"orgs": orgs})
		return err
	})
	return heads, err
}

// Organisations lists the ids of those of orgs that exist.
func (s *System) Organisations(ctx context.Context, orgs []OrgID) (found []OrgID, err error) {
	type row struct{ ID OrgID }
	var rows []row
	err = s.runWriter(ctx, func(tx pgx.Tx) (err error) {
		rows, err = all[row](ctx, tx, `SELECT id FROM organisation WHERE id = ANY (@orgs::uuid[]) ORDER BY id`,
			pgx.StrictNamedArgs{"orgs": orgs})
		return err
	})
	for _, r := range rows {
		found = append(found, r.ID)
	}
	return found, err
}

// An AuditCheckpoint says where every chain stood, signed.
type AuditCheckpoint struct {
	Number    int64
	At        time.Time
	Daily     bool
	Previous  []byte // the hash of the checkpoint before
	Base      []byte // the hash of the last daily one before
	Orgs      []OrgID
	Writers   []WriterID
	Seqs      []int64
	Hashes    [][]byte
	Hash      []byte
	Kid       KeyID
	Signature []byte
}

const selectCheckpoints = `SELECT number, at, daily, previous, base, orgs, writers, seqs, hashes, hash, kid, signature FROM audit_checkpoint `

// LastAuditCheckpoints returns the newest checkpoint and the newest daily one, which may be the same. Where there is
// none their numbers are 0.
func (s *System) LastAuditCheckpoints(ctx context.Context) (last, daily AuditCheckpoint, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		if last, err = one[AuditCheckpoint](ctx, tx, selectCheckpoints+`ORDER BY number DESC LIMIT 1`, nil); err != nil {
			return err
		}
		daily, err = one[AuditCheckpoint](ctx, tx, selectCheckpoints+`WHERE daily ORDER BY number DESC LIMIT 1`, nil)
		return err
	})
	if IsAbsent(err) {
		err = nil
	}
	return last, daily, err
}

// An AuditMove is where a chain stands now, and when it last moved.
type AuditMove struct {
	Org    OrgID
	Writer WriterID
	Seq    int64
	Hash   []byte
	At     time.Time
	Was    []byte // the hash now of the entry that the checkpoint names; nil where there is none
}

// AuditMoves says where chains stand now: those of a checkpoint, and those that began at since or later. One that has
// no entry is not among them.
func (s *System) AuditMoves(ctx context.Context, named AuditCheckpoint, since time.Time) (moves []AuditMove, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		moves, err = all[AuditMove](ctx, tx, `
			SELECT c.org, c.writer, h.seq, h.hash, h.at, w.hash AS was
			FROM (
				SELECT org, writer, max(seq) AS seq
				FROM (
					SELECT org, writer, seq FROM unnest(@orgs::uuid[], @writers::uuid[], @seqs::bigint[]) AS n (org, writer, seq)
					UNION ALL
					SELECT org_id, writer, NULL FROM audit_entry WHERE seq = 1 AND at >= @since) AS picked
				GROUP BY org, writer) AS c
			CROSS JOIN LATERAL (SELECT seq, hash, at FROM audit_entry WHERE org_id = c.org AND writer = c.writer ORDER BY seq DESC LIMIT 1) AS h
			LEFT JOIN LATERAL (SELECT hash FROM audit_entry WHERE org_id = c.org AND writer = c.writer AND seq = c.seq LIMIT 1) AS w ON true
			ORDER BY c.org, c.writer`,
			pgx.StrictNamedArgs{"orgs": named.Orgs, "writers": named.Writers, "seqs": named.Seqs, "since": since})
		return err
	})
	return moves, err
}

// AddAuditCheckpoint writes a checkpoint and reports whether it did: of two with one number the second is not written,
// and that is no error.
func (s *System) AddAuditCheckpoint(ctx context.Context, c AuditCheckpoint) (added bool, err error) {
	err = s.run(ctx, func(tx pgx.Tx) error {
		n, err := exec(ctx, tx, `
			INSERT INTO audit_checkpoint (number, at, daily, previous, base, orgs, writers, seqs, hashes, hash, kid, signature)
			VALUES (@number, @at, @daily, @previous, @base, @orgs::uuid[], @writers::uuid[], @seqs, @hashes, @hash, @kid, @signature)
			ON CONFLICT DO NOTHING`,
			pgx.StrictNamedArgs{
				"number": c.Number, "at": c.At, "daily": c.Daily, "previous": c.Previous, "base": c.Base, "orgs": some(c.Orgs),
				"writers": some(c.Writers), "seqs": some(c.Seqs), "hashes": some(c.Hashes), "hash": c.Hash, "kid": c.Kid, "signature": c.Signature,
			})
		added = n > 0
		return err
	})
	return added, err
}

// some is list, and never NULL.
func some[T any](list []T) []T { return append([]T{}, list...) }

// dropTime is how long a day's worth of entries may take to be deleted. It is one transaction, so that whoever
// verifies sees it done or not begun.
const dropTime = `SET LOCAL statement_timeout = '10min'`

// AuditDropsBehind is the number of the checkpoint behind which DropAudit would delete what is older than a time, which
// is a week ago or earlier; 0 where it would delete nothing.
func (s *System) AuditDropsBehind(ctx context.Context, before time.Time) (number int64, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		number, err = value[int64](ctx, tx, `
			SELECT CASE WHEN last > (SELECT min(number) FROM audit_checkpoint) THEN last ELSE 0 END
			FROM (SELECT max(number) AS last FROM audit_checkpoint WHERE daily AND at < @before) AS d`,
			pgx.StrictNamedArgs{"before": before})
		return err
	})
	return number, err
}

// DropAudit deletes the entries behind the newest daily checkpoint before a time and says how many. What is younger
// than a week stays.
func (s *System) DropAudit(ctx context.Context, before time.Time) (dropped int64, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		if _, err = exec(ctx, tx, dropTime, nil); err != nil {
			return err
		}
		dropped, err = value[int64](ctx, tx, `SELECT audit_drop(@before)`, pgx.StrictNamedArgs{"before": before})
		return err
	})
	return dropped, err
}

// ThinAudit deletes the checkpoints between the daily ones that a newer daily one follows.
func (s *System) ThinAudit(ctx context.Context) (thinned int64, err error) {
	err = s.run(ctx, func(tx pgx.Tx) (err error) {
		thinned, err = value[int64](ctx, tx, `SELECT audit_thin()`, nil)
		return err
	})
	return thinned, err
}

// An AuditWalk reads the whole log as it was in one moment.
type AuditWalk struct {
	tx pgx.Tx
	// Orgs are the organisations there are, or the one that was asked for.
	Orgs []OrgID
}

// walk begins a transaction that sees one moment, and gives its reader time.
const walk = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL ROLE graft_system; SET LOCAL idle_in_transaction_session_timeout = '10min'"

// WalkAudit runs fn with a walk over the log of one organisation, or of all where org is zero.
func (s *System) WalkAudit(ctx context.Context, org OrgID, fn func(*AuditWalk) error) error {
	// Once: what fn has written to somebody cannot be taken back, and one that only reads collides with nobody.
	err := pgx.BeginTxFunc(ctx, s.db.pool, pgx.TxOptions{BeginQuery: walk},
		func(tx pgx.Tx) error {
			type row struct{ ID OrgID }
			rows, err := all[row](ctx, tx, `SELECT id FROM organisation WHERE @org::uuid IS NULL OR id = @org ORDER BY id`, pgx.StrictNamedArgs{"org": org})
			if err != nil {
				return err
			}
			w := &AuditWalk{tx: tx}
			for _, r := range rows {
				w.Orgs = append(w.Orgs, r.ID)
			}
			return fn(w)
		})
	return unavailable(err)
}

// Checkpoints calls fn with every checkpoint up to a number, in order.
func (w *AuditWalk) Checkpoints(ctx context.Context, last int64, fn func(AuditCheckpoint) error) error {
	for number := int64(0); ; {
		page, err := all[AuditCheckpoint](ctx, w.tx, selectCheckpoints+`WHERE number > @number AND number <= @last ORDER BY number LIMIT 50`,
			pgx.StrictNamedArgs{"number": number, "last": last})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, c := range page {
			if err := fn(c); err != nil {
				return err
			}
			number = c.Number
		}
	}
}

// Begins calls fn with the first entry of every chain that begins, for what those name.
func (w *AuditWalk) Begins(ctx context.Context, org OrgID, fn func(AuditLink) error) error {
	return w.links(ctx, selectLinks+`WHERE org_id = @org AND seq = 1 AND (writer, seq) > (@writer, @seq) ORDER BY writer, seq LIMIT @page`, org, fn)
}

// Links calls fn with every entry of an organisation, chain after chain.
func (w *AuditWalk) Links(ctx context.Context, org OrgID, fn func(AuditLink) error) error {
	return w.links(ctx, selectLinks+`WHERE org_id = @org AND (writer, seq) > (@writer, @seq) ORDER BY writer, seq LIMIT @page`, org, fn)
}

const selectLinks = `
	SELECT org_id AS org, writer, seq, heads, hash, run_id AS run, kind, at, via, agent_id AS agent, user_id AS user, tool, version,
	       source, connection_id AS connection, digest, outcome, took * interval '1 microsecond' AS took, line
	FROM audit_entry `

// walkPage is how many entries are in memory at a time.
const walkPage = 2000

func (w *AuditWalk) links(ctx context.Context, sql string, org OrgID, fn func(AuditLink) error) error {
	var after AuditLink
	for {
		page, err := all[AuditLink](ctx, w.tx, sql, pgx.StrictNamedArgs{
			"org": org, "writer": pgtype.UUID{Bytes: after.Writer.uuid, Valid: true}, "seq": after.Seq, "page": walkPage,
		})
		if err != nil {
			return fmt.Errorf("read audit entries after %s %d: %w", after.Writer, after.Seq, err)
		}
		for _, l := range page {
			if err := fn(l); err != nil {
				return err
			}
		}
		if len(page) < walkPage {
			return nil
		}
		after = page[len(page)-1]
	}
}
