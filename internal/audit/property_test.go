package audit_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/getgraft/graft/internal/store/storetest"
)

// TestNoTamperingGoesUnseen: whatever is done to whichever entries, Verify names the first place that it reached.
func TestNoTamperingGoesUnseen(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const chains, length = 4, 9
	for range chains / 2 { // two organisations, two chains each
		c := storetest.Organisation(t, h.db)
		for range 2 {
			w, stop := h.writer(t)
			commit(t, w, c.Org, length)
			stop()
		}
	}
	h.checkpoint(t)
	h.well(t, chains*length, chains)
	storetest.Tamper(t, h.dsn, `CREATE TABLE kept AS SELECT *, dense_rank() OVER (ORDER BY org_id, writer) AS chain FROM audit_entry`)
	own := slices.DeleteFunc(slices.Sorted(maps.Keys(columns)), func(c string) bool { return c == "org_id" || c == "writer" || c == "seq" })
	rapid.Check(t, func(r *rapid.T) {
		chain := rapid.IntRange(1, chains).Draw(r, "chain")
		seq := rapid.IntRange(1, length).Draw(r, "seq")
		row := fmt.Sprintf(`FROM kept k WHERE k.chain = %d AND e.org_id = k.org_id AND e.writer = k.writer AND e.seq = k.seq AND k.seq `, chain)
		var sql string
		switch rapid.IntRange(0, 3).Draw(r, "kind") {
		case 0:
			column := rapid.SampledFrom(own).Draw(r, "column")
			sql = fmt.Sprintf(`UPDATE audit_entry e SET %s = %s %s = %d`, column, columns[column], row, seq)
		case 1:
			last := rapid.IntRange(seq, length).Draw(r, "last")
			sql = fmt.Sprintf(`DELETE FROM audit_entry e USING kept k WHERE k.chain = %d AND e.org_id = k.org_id AND e.writer = k.writer AND e.seq = k.seq AND k.seq BETWEEN %d AND %d`, chain, seq, last)
		case 2:
			sql = fmt.Sprintf(`DELETE FROM audit_entry e USING kept k WHERE k.chain = %d AND e.org_id = k.org_id AND e.writer = k.writer AND e.seq = k.seq AND k.seq >= %d`, chain, seq)
		case 3:
			other := rapid.IntRange(1, length).Filter(func(n int) bool { return n != seq }).Draw(r, "other")
			sql = fmt.Sprintf(`UPDATE audit_entry e SET hash = o.hash, heads = o.heads, run_id = o.run_id, at = o.at, agent_id = o.agent_id, user_id = o.user_id,
				tool = o.tool, version = o.version, connection_id = o.connection_id, digest = o.digest, took = o.took, line = o.line
				FROM kept o WHERE o.chain = %d AND e.org_id = o.org_id AND e.writer = o.writer AND e.seq + o.seq = %d AND e.seq IN (%d, %d)`, chain, seq+other, seq, other)
			seq = min(seq, other)
		}
		if storetest.Tamper(t, h.dsn, sql) == 0 {
			r.Fatalf("nothing was touched by %s", sql)
		}
		report := h.verify(t)
		storetest.Tamper(t, h.dsn, `DELETE FROM audit_entry`)
		storetest.Tamper(t, h.dsn, `INSERT INTO audit_entry SELECT (jsonb_populate_record(NULL::audit_entry, to_jsonb(kept))).* FROM kept`)
		if len(report.Faults) == 0 || report.Faults[0].Seq != int64(seq) {
			r.Fatalf("Verify() after %s = %s, want entry %d", sql, report, seq)
		}
	})
	h.well(t, chains*length, chains)
}
