package server_test

import (
	"context"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/getgraft/graft/internal/servertest"
)

// BenchmarkRefresh measures refreshes over HTTP, each a rotation that is durable when it is answered, beside what any
// rotation must cost: a transaction of two statements on the same database. 16 at a time, in turn within one run. The bar is
// half as many a second; it is reported, never asserted.
func BenchmarkRefresh(b *testing.B) {
	const callers = 16
	defer debug.SetGCPercent(debug.SetGCPercent(200)) // as serve has it
	k := servertest.Start(b, servertest.Options{Replicas: 1, NoLog: true})
	direct, host := k.Replicas()[0].URL, "Host: "+strings.TrimPrefix(k.URL, "http://") // past the kit's proxy
	var apps [callers]access
	for i := range apps {
		apps[i] = connect(b, k)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers, DisableCompression: true}}
	pool, err := pgxpool.New(b.Context(), k.DSN)
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(b.Context(), `CREATE TABLE bare (id bigint PRIMARY KEY, n bigint NOT NULL)`); err != nil {
		b.Fatal(err)
	}
	side := func(b *testing.B, each func(caller int, n int64) error) {
		b.Helper()
		var caller, n atomic.Int64
		b.SetParallelism(callers / 2) // times GOMAXPROCS, which is two where this was made
		b.RunParallel(func(pb *testing.PB) {
			mine := int(caller.Add(1)-1) % callers
			for pb.Next() {
				if err := each(mine, n.Add(1)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	b.Run("bare", func(b *testing.B) {
		from := int64(b.N) << 20
		side(b, func(_ int, n int64) error {
			return pgx.BeginFunc(b.Context(), pool, func(tx pgx.Tx) error {
				id := from + n
				if _, err := tx.Exec(context.Background(), `UPDATE bare SET n = n + 1 WHERE id = $1`, id-callers); err != nil {
					return err
				}
				_, err := tx.Exec(context.Background(), `INSERT INTO bare (id, n) VALUES ($1, 0) ON CONFLICT DO NOTHING`, id)
				return err
			})
		})
	})
	b.Run("refresh", func(b *testing.B) {
		side(b, func(caller int, _ int64) error {
			form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {apps[caller].refresh}, "client_id": {apps[caller].client}}
			var got struct {
				Refresh string `json:"refresh_token"`
			}
			decode(b, ask(b, client, "POST", direct+"/mcp/oauth/token", form.Encode(), "Content-Type: application/x-www-form-urlencoded", host), http.StatusOK, &got)
			apps[caller].refresh = got.Refresh
			return nil
		})
	})
}
