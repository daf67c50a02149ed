package server_test

import (
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/getgraft/graft/internal/servertest"
)

// BenchmarkRefresh measures refreshes over HTTP, each a rotation that is durable when it is answered, beside what any
// rotation must cost: a transaction of two statements on the same database. 16 at a time, in turn within one run: what the
// machine does meanwhile falls on both. The bar is half as many a second; it is reported, never asserted.
func BenchmarkRefresh(b *testing.B) {
	const callers, round, rounds = 16, 1600, 20
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
	var inserted atomic.Int64
	bare := func(int) error {
		return pgx.BeginFunc(b.Context(), pool, func(tx pgx.Tx) error {
			id := inserted.Add(1)
			if _, err := tx.Exec(b.Context(), `UPDATE bare SET n = n + 1 WHERE id = $1`, id-callers); err != nil {
				return err
			}
			_, err := tx.Exec(b.Context(), `INSERT INTO bare (id, n) VALUES ($1, 0)`, id)
			return err
		})
	}
	refresh := func(caller int) error {
		form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {apps[caller].refresh}, "client_id": {apps[caller].client}}
		var got struct {
			Refresh string `json:"refresh_token"`
		}
		decode(b, ask(b, client, "POST", direct+"/mcp/oauth/token", form.Encode(), "Content-Type: application/x-www-form-urlencoded", host), http.StatusOK, &got)
		apps[caller].refresh = got.Refresh
		return nil
	}
	// side is how long a round takes.
	side := func(each func(caller int) error) time.Duration {
		began := time.Now()
		var all errgroup.Group
		for caller := range callers {
			all.Go(func() error {
				for range round / callers {
					if err := each(caller); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := all.Wait(); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	for b.Loop() {
		var took [2]time.Duration
		for range rounds {
			x, y := side(bare), side(refresh)
			took[0] += x
			took[1] += y
		}
		b.ReportMetric(0, "ns/op") // of all rounds, which says nothing
		b.ReportMetric(took[0].Seconds()*1e6/(round*rounds), "bare-µs")
		b.ReportMetric(took[1].Seconds()*1e6/(round*rounds), "refresh-µs")
		b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "refreshes/bare")
	}
}
