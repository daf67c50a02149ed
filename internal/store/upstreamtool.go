package store

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/getgraft/graft/internal/reason"
)

// An UpstreamTool is one tool of an upstream, as it was last listed.
type UpstreamTool struct {
	UpstreamID    UpstreamID
	Original      string // the upstream's own name for it
	Name          string // what follows <upstream>__ on the wire
	Position      int32  // in its list
	Title         string
	Description   string
	InputSchema   []byte // JSON
	OutputSchema  []byte // JSON; nil for none
	Annotations   []byte // JSON; nil for none
	Hash          []byte // of the definition, 32 bytes
	Version       int32  // counts up with the hash
	Override      string // a description by a person; "" for the tool's own
	LeftOut       string // why it is not offered; "" where it is
	FirstListedAt time.Time
	ChangedAt     time.Time
	GoneAt        *time.Time
}

const upstreamToolColumns = `
	t.upstream_id, t.original, t.name, t.position, t.title, t.description, t.input_schema, t.output_schema, t.annotations, t.hash,
	t.version, t.override, t.left_out, t.first_listed_at, t.changed_at, t.gone_at
	FROM upstream_tool t`

// UpstreamTools lists what an upstream last listed, in its order, and after that what it no longer does.
func (tx *Tx) UpstreamTools(ctx context.Context, id UpstreamID) ([]UpstreamTool, error) {
	return all[UpstreamTool](ctx, tx.tx, `SELECT `+upstreamToolColumns+`
		WHERE t.upstream_id = @id
		ORDER BY t.gone_at IS NOT NULL, t.position, t.original COLLATE "C"`, pgx.StrictNamedArgs{"id": id})
}

// DescribeUpstreamTool puts a person's description in place of the tool's own, or takes it away with "".
func (tx *Tx) DescribeUpstreamTool(ctx context.Context, id UpstreamID, original, description string) error {
	if err := tx.lockLiveUpstream(ctx, id); err != nil {
		return err
	}
	if len(description) > 16_000 {
		return reason.Refuse(reason.InputInvalid, "Keep the description to 16,000 characters.").Field("description")
	}
	n, err := exec(ctx, tx.tx, `UPDATE upstream_tool SET override = @text WHERE upstream_id = @id AND original = @original`,
		pgx.StrictNamedArgs{"id": id, "original": original, "text": description})
	if err == nil && n == 0 {
		return reason.NotFound
	}
	if err != nil {
		return err
	}
	return tx.toolsMoved(ctx)
}

// ClaimListing reports whether the caller is the one to list a live upstream now: of many replicas one is, and nobody
// who comes sooner than every after the last.
func (tx *Tx) ClaimListing(ctx context.Context, id UpstreamID, every time.Duration) (bool, error) {
	n, err := exec(ctx, tx.tx, `
		UPDATE upstream SET tried_at = @now
		WHERE id = @id AND revoked_at IS NULL AND (tried_at IS NULL OR tried_at <= @before)`,
		pgx.StrictNamedArgs{"id": id, "now": tx.now, "before": tx.now.Add(-every)})
	return n > 0, err
}

// fewTools is up to how many tools an upstream has that agents are shown all of, unless somebody said otherwise.
const fewTools = 20

// RecordListing keeps what an upstream listed: a new definition is a new version of the tool, and what is missing is
// gone. Of list, Original to LeftOut are read, but not Version and Override. remark is our sentence where not all of what
// it lists was taken. It reports whether anything moved, which every replica is then told.
func (tx *Tx) RecordListing(ctx context.Context, id UpstreamID, list []UpstreamTool, remark string) (moved bool, err error) {
	if err := tx.holdUpstream(ctx, id); err != nil {
		return false, err
	}
	before, err := tx.UpstreamTools(ctx, id)
	if err != nil {
		return false, err
	}
	known := make(map[string]UpstreamTool, len(before))
	for _, t := range before {
		known[t.Original] = t
	}
	last, err := tx.lastVersions(ctx, id)
	if err != nil {
		return false, err
	}
	var changed []UpstreamTool
	offered := 0
	for _, t := range list {
		if t.LeftOut == "" {
			offered++
		}
		old, was := known[t.Original]
		delete(known, t.Original)
		if was && old.GoneAt == nil && old.Position == t.Position && old.same(t) {
			continue
		}
		t.Version, t.FirstListedAt, t.ChangedAt = last[t.Original]+1, tx.now, tx.now
		if was {
			t.FirstListedAt, t.ChangedAt, t.Version = old.FirstListedAt, old.ChangedAt, old.Version
			if !bytes.Equal(old.Hash, t.Hash) {
				t.ChangedAt, t.Version = tx.now, old.Version+1
			}
		}
		changed = append(changed, t)
	}
	for part := range slices.Chunk(changed, 200) {
		if err := tx.writeUpstreamTools(ctx, id, part); err != nil {
			return false, err
		}
	}
	gone := make([]string, 0, len(known))
	for original, t := range known {
		if t.GoneAt == nil {
			gone = append(gone, original)
		}
	}
	if _, err := exec(ctx, tx.tx, `UPDATE upstream_tool SET gone_at = @now WHERE upstream_id = @id AND original = ANY (@gone)`,
		pgx.StrictNamedArgs{"id": id, "gone": gone, "now": tx.now}); err != nil {
		return false, err
	}
	state, err := value[string](ctx, tx.tx, `SELECT state FROM upstream WHERE id = @id`, pgx.StrictNamedArgs{"id": id})
	if err != nil {
		return false, err
	}
	if _, err := exec(ctx, tx.tx, `
		UPDATE upstream SET state = 'ok', tried_at = @now, last_listed_at = @now, last_error_word = '', last_error = @remark,
		                    list_all = coalesce(list_all, @few)
		WHERE id = @id`, pgx.StrictNamedArgs{"id": id, "now": tx.now, "remark": remark, "few": offered <= fewTools}); err != nil {
		return false, err
	}
	if len(changed) == 0 && len(gone) == 0 && state == UpstreamOK {
		return false, nil
	}
	return true, tx.toolsMoved(ctx)
}

// same reports whether both are kept alike. The hash is of what was listed; what we make of that may change with Graft.
func (t UpstreamTool) same(o UpstreamTool) bool {
	return t.Name == o.Name && t.LeftOut == o.LeftOut && bytes.Equal(t.Hash, o.Hash) && t.Title == o.Title && t.Description == o.Description &&
		bytes.Equal(t.InputSchema, o.InputSchema) && bytes.Equal(t.OutputSchema, o.OutputSchema) && bytes.Equal(t.Annotations, o.Annotations)
}

// lastVersions is up to which version the tools of an upstream's name were counted by upstreams before it: what a
// person allowed of one is never taken for a tool of the next.
func (tx *Tx) lastVersions(ctx context.Context, id UpstreamID) (map[string]int32, error) {
	rows, err := all[struct {
		Original string
		Version  int32
	}](ctx, tx.tx, `
		SELECT t.original, max(t.version) AS version
		FROM upstream_tool t JOIN upstream p ON p.id = t.upstream_id JOIN upstream me ON me.name = p.name
		WHERE me.id = @id AND p.id <> @id
		GROUP BY t.original`, pgx.StrictNamedArgs{"id": id})
	last := make(map[string]int32, len(rows))
	for _, r := range rows {
		last[r.Original] = r.Version
	}
	return last, err
}

func (tx *Tx) writeUpstreamTools(ctx context.Context, id UpstreamID, list []UpstreamTool) error {
	column := func(of func(UpstreamTool) string) []string {
		c := make([]string, len(list))
		for i, t := range list {
			c[i] = of(t)
		}
		return c
	}
	raw := func(of func(UpstreamTool) []byte) [][]byte {
		c := make([][]byte, len(list))
		for i, t := range list {
			c[i] = of(t)
		}
		return c
	}
	number := func(of func(UpstreamTool) int32) []int32 {
		c := make([]int32, len(list))
		for i, t := range list {
			c[i] = of(t)
		}
		return c
	}
	at := func(of func(UpstreamTool) time.Time) []time.Time {
		c := make([]time.Time, len(list))
		for i, t := range list {
			c[i] = of(t)
		}
		return c
	}
	_, err := exec(ctx, tx.tx, `
		INSERT INTO upstream_tool (upstream_id, original, name, position, title, description, input_schema, output_schema, annotations,
		                           hash, version, left_out, first_listed_at, changed_at)
		SELECT @id, original, name, position, title, description, input_schema, output_schema, annotations, hash, version, left_out, first_listed_at, changed_at
		FROM unnest(@original::text[], @name::text[], @position::int[], @title::text[], @description::text[], @input::bytea[], @output::bytea[],
		            @annotations::bytea[], @hash::bytea[], @version::int[], @left::text[], @first::timestamptz[], @changed::timestamptz[])
		  AS n (original, name, position, title, description, input_schema, output_schema, annotations, hash, version, left_out, first_listed_at, changed_at)
		ON CONFLICT (org_id, upstream_id, original) DO UPDATE SET
			name = excluded.name, position = excluded.position, title = excluded.title, description = excluded.description,
			input_schema = excluded.input_schema, output_schema = excluded.output_schema, annotations = excluded.annotations,
			hash = excluded.hash, version = excluded.version, left_out = excluded.left_out, changed_at = excluded.changed_at, gone_at = NULL`,
		pgx.StrictNamedArgs{
			"id":          id,
			"original":    column(func(t UpstreamTool) string { return t.Original }),
			"name":        column(func(t UpstreamTool) string { return t.Name }),
			"position":    number(func(t UpstreamTool) int32 { return t.Position }),
			"title":       column(func(t UpstreamTool) string { return t.Title }),
			"description": column(func(t UpstreamTool) string { return t.Description }),
			"input":       raw(func(t UpstreamTool) []byte { return t.InputSchema }),
			"output":      raw(func(t UpstreamTool) []byte { return t.OutputSchema }),
			"annotations": raw(func(t UpstreamTool) []byte { return t.Annotations }),
			"hash":        raw(func(t UpstreamTool) []byte { return t.Hash }),
			"version":     number(func(t UpstreamTool) int32 { return t.Version }),
			"left":        column(func(t UpstreamTool) string { return t.LeftOut }),
			"first":       at(func(t UpstreamTool) time.Time { return t.FirstListedAt }),
			"changed":     at(func(t UpstreamTool) time.Time { return t.ChangedAt }),
		})
	return err
}

// RecordListingFailure notes why an upstream could not be listed, in our words. What was last known of it stays. It
// reports whether that is news, which every replica is then told: its tools are marked.
func (tx *Tx) RecordListingFailure(ctx context.Context, id UpstreamID, word, sentence string) (moved bool, err error) {
	if err := tx.holdUpstream(ctx, id); err != nil {
		return false, err
	}
	state, err := value[string](ctx, tx.tx, `SELECT state FROM upstream WHERE id = @id`, pgx.StrictNamedArgs{"id": id})
	if err != nil {
		return false, err
	}
	if _, err := exec(ctx, tx.tx, `
		UPDATE upstream SET state = 'failing', tried_at = @now, last_error_word = @word, last_error = @sentence WHERE id = @id`,
		pgx.StrictNamedArgs{"id": id, "now": tx.now, "word": word, "sentence": sentence}); err != nil {
		return false, err
	}
	if state == UpstreamFailing {
		return false, nil
	}
	return true, tx.toolsMoved(ctx)
}

// A Sealed is what a header is made of, still sealed.
type Sealed struct {
	Upstream UpstreamID // of a header; zero for a secret
	Secret   SecretID   // of a secret; zero for a header
	Name     string
	Secrets  []string // that a header's template names
	Value    []byte
	SetAt    time.Time
}

// An UpstreamView is all that serving an organisation's upstreams takes, read at once and kept by each replica until
// the bus says that it moved.
type UpstreamView struct {
	Upstreams []Upstream     // live ones
	Tools     []UpstreamTool // theirs that are offered, by upstream, in their order
	Headers   []Sealed
	Secrets   []Sealed // those that a header names
}

// UpstreamView reads the view.
func (tx *Tx) UpstreamView(ctx context.Context) (v UpstreamView, err error) {
	if v.Upstreams, err = all[Upstream](ctx, tx.tx, `SELECT `+upstreamColumns+` WHERE p.revoked_at IS NULL ORDER BY p.name COLLATE "C"`, nil); err != nil {
		return UpstreamView{}, err
	}
	if v.Tools, err = all[UpstreamTool](ctx, tx.tx, `SELECT `+upstreamToolColumns+`
		JOIN upstream p ON p.id = t.upstream_id
		WHERE p.revoked_at IS NULL AND t.gone_at IS NULL AND t.left_out = ''
		ORDER BY p.name COLLATE "C", t.position, t.original COLLATE "C"`, nil); err != nil {
		return UpstreamView{}, err
	}
	if v.Headers, err = all[Sealed](ctx, tx.tx, `
		SELECT upstream_id AS upstream, NULL::uuid AS secret, name, secrets, template AS value, set_at
		FROM upstream_header ORDER BY upstream_id, name`, nil); err != nil {
		return UpstreamView{}, err
	}
	v.Secrets, err = all[Sealed](ctx, tx.tx, `
		SELECT NULL::uuid AS upstream, s.id AS secret, s.name, NULL::text[] AS secrets, s.value, s.set_at
		FROM secret s WHERE s.name IN (SELECT unnest(secrets) FROM upstream_header)
		ORDER BY s.name`, nil)
	return v, err
}
