package oauth_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
	"github.com/getgraft/graft/oauth"
)

func TestDocumentIsReadKeptAndReadAnew(t *testing.T) {
	t.Parallel()
	redirect := atomic.Pointer[string]{}
	first, second := "https://app.example/one", "https://app.example/two"
	redirect.Store(&first)
	h := startHost(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header; got.Get("Accept") != "application/json" || got.Get("Cookie") != "" || got.Get("Authorization") != "" {
			t.Errorf("the document was asked for with %v", got)
		}
		w.Header().Set("Content-Type", "application/client-metadata+json; charset=utf-8")
		w.Header().Set("Cache-Control", "public, max-age=600")
		w.Header().Set("Set-Cookie", "a=b")
		_, _ = io.WriteString(w, document("https://"+r.Host+r.URL.Path, *redirect.Load()))
	})
	d := newDesk(t, nil, h)
	url := h.URL + "/client.json"
	for _, step := range []struct {
		pass  time.Duration
		want  string
		asked int32
	}{
		{0, first, 1},
		{9 * time.Minute, first, 1}, // fresh, although it has changed there
		{2 * time.Minute, second, 2},
		{9 * time.Minute, second, 2},
	} {
		d.clock.pass(step.pass)
		if got := d.good(t, url); len(got) != 1 || got[0] != step.want {
			t.Errorf("redirect URIs = %v, want %s", got, step.want)
		}
		if got := h.asked.Load(); got != step.asked {
			t.Errorf("asked %d times, want %d", got, step.asked)
		}
		redirect.Store(&second)
	}
	// What one replica read is fresh for the others.
	other := documents(t, oauth.DocumentsConfig{DB: d.db, Client: client(t, nil, h), Log: slog.New(slog.DiscardHandler)})
	if c, err := other.Client(t.Context(), url); err != nil || c.RedirectURIs[0] != second || h.asked.Load() != 2 {
		t.Errorf("on another replica: %+v, %v after %d requests, want the same without asking", c, err, h.asked.Load())
	}
}

// TestAttack21 is what strangers try with the URL of a document: to make Graft knock where it may not, or hang, or
// believe. Here the exempt 127.0.0.1 stands for a public address and 127.0.0.2 for a private one: both can be watched.
func TestAttack21(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{}, 1)
	var private string // host:port of what must not be reached
	handlers := map[string]http.HandlerFunc{
		"/redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://"+private+"/client.json", http.StatusFound)
		},
		"/redirect-kept": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://"+private+"/client.json", http.StatusTemporaryRedirect)
		},
		"/long": func(w http.ResponseWriter, r *http.Request) {
			own := document("https://" + r.Host + r.URL.Path)
			answer(w, own+strings.Repeat(" ", 6<<10-len(own)))
		},
		"/slow": func(w http.ResponseWriter, r *http.Request) {
			answer(w, "{")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			ended <- struct{}{}
		},
		"/bomb": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			answer(w, bomb(document("https://"+r.Host+r.URL.Path)))
		},
		"/hidden-bomb": func(w http.ResponseWriter, r *http.Request) { answer(w, bomb(document("https://"+r.Host+r.URL.Path))) },
		"/mismatch":    func(w http.ResponseWriter, r *http.Request) { answer(w, document("https://claude.ai/client.json")) },
		"/slash":       func(w http.ResponseWriter, r *http.Request) { answer(w, document("https://"+r.Host+r.URL.Path+"/")) },
		"/secret": func(w http.ResponseWriter, r *http.Request) {
			answer(w, strings.Replace(document("https://"+r.Host+r.URL.Path), "{", `{"client_secret": "x", `, 1))
		},
		"/basic": func(w http.ResponseWriter, r *http.Request) {
			answer(w, strings.Replace(document("https://"+r.Host+r.URL.Path), "{", `{"token_endpoint_auth_method": "client_secret_basic", `, 1))
		},
	}
	h := startHost(t, func(w http.ResponseWriter, r *http.Request) { handlers[r.URL.Path](w, r) })
	private = "127.0.0.2:" + h.port()
	hits := countConnections(t, private)
	d := newDesk(t, nil, h)
	for path, says := range map[string]string{
		"/redirect":      "redirected elsewhere",
		"/redirect-kept": "redirected elsewhere",
		"/long":          "longer than 5120 bytes",
		"/bomb":          "longer than 5120 bytes",
		"/hidden-bomb":   "not a JSON object",
		"/mismatch":      "client_id is not exactly",
		"/slash":         "client_id is not exactly",
		"/secret":        "client_secret",
		"/basic":         "with a secret",
	} {
		var seen dials
		d.refused(t, seen.watch(t.Context()), h.URL+path, reason.InputInvalid, says)
		if tried, _ := seen.get(); len(tried) > 1 {
			t.Errorf("%s: dialled %v, want the one host at most", path, tried)
		}
	}
	d.Within(100 * time.Millisecond)
	began := time.Now()
	d.refused(t, t.Context(), h.URL+"/slow", reason.Unavailable, "Try again")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("a host that sends one byte and no more is waited for %s", took)
	}
	<-ended // and its connection is not held

	asked := h.asked.Load()
	host := strings.TrimPrefix(h.URL, "https://")
	for url, says := range map[string]string{
		"http://" + host + "/client.json":           "https://",
		"https://user@" + host + "/client.json":     "user name",
		"https://user:word@" + host + "/client":     "user name",
		"https://" + host + "/client.json#a":        "fragment",
		"https://" + host + "/a/../client.json":     ". or ..",
		"https://" + host + "/a/%2e%2e/client.json": ". or ..",
		"https://" + host + "/./client.json":        ". or ..",
		"https://" + host:                           "no path",
		"https://" + private + "/client.json":       "public address",
		"https://[::1]:" + h.port() + "/client":     "public address",
		"https://169.254.169.254/latest/meta-data":  "public address",
		"https://2130706433/client":                 "not accepted",
		"https://93.184.216.34:22/client":           "port 443 only",
	} {
		var seen dials
		d.refused(t, seen.watch(t.Context()), url, reason.InputInvalid, says)
		if tried, _ := seen.get(); len(tried) > 0 {
			t.Errorf("%s: dialled %v, want none", url, tried)
		}
		if d.stored(t, url) {
			t.Errorf("%s is kept", url)
		}
	}
	if got := h.asked.Load(); got != asked || hits.Load() != 0 {
		t.Errorf("the host was asked %d times and the private address connected to %d times, want none", got-asked, hits.Load())
	}
}

// bomb is a text that unpacks to a megabyte more of itself.
func bomb(text string) string {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, text+strings.Repeat(" ", 1<<20))
	_ = w.Close()
	return packed.String()
}

func TestAttack21NamesOfPrivateAddressesAreNotDialled(t *testing.T) {
	t.Parallel()
	private := []string{
		"127.0.0.2", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "168.63.129.16", "::1", "fe80::1",
		"fd00:ec2::254", "::ffff:10.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::",
	}
	d := newDesk(t, serveDNS(t, func(name string, _ int) []string {
		if name == "public.test" {
			return []string{"93.184.216.34"}
		}
		var i int
		_, _ = fmt.Sscanf(name, "private%d.test", &i)
		return private[i : i+1]
	}))
	for i, addr := range private {
		var seen dials
		url := fmt.Sprintf("https://private%d.test/client.json", i)
		d.refused(t, seen.watch(t.Context()), url, reason.InputInvalid, "public address")
		if tried, connected := seen.get(); len(tried) == 0 || len(connected) > 0 {
			t.Errorf("%s, which is %s: tried %v and connected to %v, want the dialer to refuse", url, addr, tried, connected)
		}
	}
	var seen dials
	d.refused(t, seen.watch(t.Context()), "https://public.test:22/client.json", reason.InputInvalid, "port 443 only")
	if _, connected := seen.get(); len(connected) > 0 {
		t.Errorf("port 22 was connected to: %v", connected)
	}
}

func TestAttack21RebindingIsNotDialled(t *testing.T) {
	t.Parallel()
	h := startHost(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // so that each time is a dial
		ownDocument(w, r)
	})
	hits := countConnections(t, "127.0.0.2:"+h.port())
	d := newDesk(t, serveDNS(t, func(_ string, n int) []string {
		if n == 1 {
			return []string{"127.0.0.1"}
		}
		return []string{"127.0.0.2"}
	}), h)
	url := "https://example.com:" + h.port() + "/client.json" // for which httptest has a certificate
	d.good(t, url)
	d.clock.pass(25 * time.Hour)
	d.good(t, url) // as it was
	d.refused(t, t.Context(), url+"?other", reason.InputInvalid, "public address")
	if hits.Load() != 0 || h.asked.Load() != 1 {
		t.Errorf("the private address was connected to %d times and the host asked %d times, want 0 and 1", hits.Load(), h.asked.Load())
	}
}

func TestLastKnownGoodStandsWhileTheDocumentCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		fail  http.HandlerFunc
		alone reason.Word // where there is none
	}{
		"304":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, reason.InputInvalid},
		"403":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, reason.InputInvalid},
		"404":      {http.NotFound, reason.InputInvalid},
		"429":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, reason.Unavailable},
		"500":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, reason.Unavailable},
		"redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/sign-in", http.StatusFound) }, reason.InputInvalid},
		"HTML": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<!doctype html>")
		}, reason.InputInvalid},
		"HTML as JSON":     {func(w http.ResponseWriter, _ *http.Request) { answer(w, "<!doctype html>") }, reason.InputInvalid},
		"an error in JSON": {func(w http.ResponseWriter, _ *http.Request) { answer(w, `{"error": "down"}`) }, reason.InputInvalid},
		"hangs up":         {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, reason.Unavailable},
		"half of it": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "4000")
			ownDocument(w, r)
		}, reason.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var down atomic.Bool
			h := startHost(t, func(w http.ResponseWriter, r *http.Request) {
				if down.Load() {
					x.fail(w, r)
					return
				}
				ownDocument(w, r)
			})
			d := newDesk(t, nil, h)
			url := h.URL + "/client.json"
			want := d.good(t, url)
			down.Store(true)
			for range 3 {
				d.clock.pass(24 * time.Hour)
				if diff := cmp.Diff(want, d.good(t, url)); diff != "" {
					t.Errorf("redirect URIs (-want +got):\n%s", diff)
				}
				d.good(t, url)
			}
			// Once each time it was not fresh, and not again so soon after that failed.
			if logged := d.log.String(); strings.Count(logged, "last known good") != 3 || !strings.Contains(logged, url) {
				t.Errorf("the log does not say three times that the last known good is used:\n%s", logged)
			}
			d.clock.pass(time.Hour)
			d.refused(t, t.Context(), url+"?other", x.alone, "app's document")
			if d.stored(t, url+"?other") {
				t.Error("a failure is kept")
			}
			down.Store(false)
			d.clock.pass(time.Minute)
			d.good(t, url+"?other")
		})
	}
}

// What a client says of itself now counts, also when it is wrong: the last known good is for when it says nothing.
func TestBrokenDocumentIsRefusedAlthoughAGoodOneIsKnown(t *testing.T) {
	t.Parallel()
	var more atomic.Value
	more.Store("")
	h := startHost(t, func(w http.ResponseWriter, r *http.Request) {
		answer(w, strings.Replace(document("https://"+r.Host+r.URL.Path), "{", "{"+more.Load().(string), 1))
	})
	d := newDesk(t, nil, h)
	url := h.URL + "/client.json"
	d.good(t, url)
	more.Store(`"client_secret": "x", `)
	d.clock.pass(25 * time.Hour)
	d.refused(t, t.Context(), url, reason.InputInvalid, "client_secret")
	d.refused(t, t.Context(), url, reason.InputInvalid, "client_secret")
	more.Store("")
	d.clock.pass(time.Minute)
	d.good(t, url)
	if got := h.asked.Load(); got != 3 {
		t.Errorf("asked %d times, want 3", got)
	}
}

func TestHostThatDoesNotAnswerIsLeftAloneForAWhile(t *testing.T) {
	t.Parallel()
	h := startHost(t, ownDocument)
	h.Close()
	up := startHost(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/absent" {
			http.NotFound(w, r)
			return
		}
		ownDocument(w, r)
	})
	d := newDesk(t, nil, h, up)
	for i := range 3 {
		var seen dials
		d.refused(t, seen.watch(t.Context()), fmt.Sprintf("%s/client%d", h.URL, i), reason.Unavailable, "Try again")
		if tried, _ := seen.get(); len(tried) > 0 != (i == 0) {
			t.Errorf("URL %d: dialled %v, want that of the first alone", i, tried)
		}
	}
	d.clock.pass(time.Minute)
	var seen dials
	d.refused(t, seen.watch(t.Context()), h.URL+"/client0", reason.Unavailable, "Try again")
	if tried, _ := seen.get(); len(tried) == 0 {
		t.Error("after a minute the host is not asked again")
	}

	// A host that answers is not blamed for one URL: else a made-up one would keep all its clients away.
	for range 3 {
		d.refused(t, t.Context(), up.URL+"/absent", reason.InputInvalid, "status 404")
	}
	d.good(t, up.URL+"/client")
	if got := up.asked.Load(); got != 2 {
		t.Errorf("asked %d times, want once for each URL", got)
	}
}

// One URL of a host that many share keeps no other of it away.
func TestURLThatIsNotAnsweredKeepsNoOtherAway(t *testing.T) {
	t.Parallel()
	h := startHost(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hangs-up":
			panic(http.ErrAbortHandler)
		case "/slow":
			<-r.Context().Done()
		default:
			ownDocument(w, r)
		}
	})
	d := newDesk(t, nil, h)
	d.refused(t, t.Context(), h.URL+"/hangs-up", reason.Unavailable, "Try again")
	d.good(t, h.URL+"/one")
	d.Within(100 * time.Millisecond)
	d.refused(t, t.Context(), h.URL+"/slow", reason.Unavailable, "Try again")
	d.Within(time.Minute)
	d.good(t, h.URL+"/two")
	asked := h.asked.Load()
	d.refused(t, t.Context(), h.URL+"/slow", reason.Unavailable, "Try again")
	if h.asked.Load() != asked {
		t.Error("the URL is asked again at once")
	}
}

func TestManyWhoAskForOneDocumentReadItOnce(t *testing.T) {
	t.Parallel()
	release, arrived := make(chan struct{}), make(chan struct{}, 20)
	h := startHost(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-release
		ownDocument(w, r)
	})
	d := newDesk(t, nil, h)
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() { d.good(t, h.URL+"/client.json") })
	}
	<-arrived
	close(release)
	asking.Wait()
	if got := h.asked.Load(); got != 1 {
		t.Errorf("asked %d times, want once", got)
	}
}

func TestDocumentIsReadForAllWhenWhoAskedFirstIsGone(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	h := startHost(t, func(w http.ResponseWriter, r *http.Request) {
		leave()
		ownDocument(w, r)
	})
	d := newDesk(t, nil, h)
	if c, err := d.Client(ctx, h.URL+"/client.json"); err != nil {
		t.Errorf("Client = %+v, %v, want it", c, err)
	}
}

func TestFewDocumentsAreReadAtOnce(t *testing.T) {
	t.Parallel()
	const many = 3 * oauth.MaxFetches
	release, arrived := make(chan struct{}), make(chan struct{}, many)
	var now, most atomic.Int32
	h := startHost(t, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		arrived <- struct{}{}
		<-release
		ownDocument(w, r)
	})
	d := newDesk(t, nil, h)
	d.Within(time.Minute)
	var asking sync.WaitGroup
	for i := range many {
		asking.Go(func() { d.good(t, fmt.Sprintf("%s/client%d", h.URL, i)) })
	}
	for range oauth.MaxFetches {
		<-arrived
	}
	close(release)
	asking.Wait()
	if got := most.Load(); got != oauth.MaxFetches {
		t.Errorf("%d documents were read at once, want %d", got, oauth.MaxFetches)
	}
}

func TestWhoFindsNoPlaceIsToldToTryAgain(t *testing.T) {
	t.Parallel()
	release, arrived := make(chan struct{}), make(chan struct{}, oauth.MaxFetches)
	h := startHost(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/late" {
			arrived <- struct{}{}
			<-release
		}
		ownDocument(w, r)
	})
	d := newDesk(t, nil, h)
	d.Within(time.Minute)
	var asking sync.WaitGroup
	for i := range oauth.MaxFetches {
		asking.Go(func() { d.good(t, fmt.Sprintf("%s/client%d", h.URL, i)) })
	}
	for range oauth.MaxFetches {
		<-arrived
	}
	d.Within(time.Millisecond) // nobody reads it now but the one who asks
	d.refused(t, t.Context(), h.URL+"/late", reason.Unavailable, "Try again")
	d.Within(time.Minute)
	close(release)
	asking.Wait()
	d.good(t, h.URL+"/late") // at once: it was nobody's fault
}

func TestStaticDocumentIsUsedInPlaceOfWhatIsThere(t *testing.T) {
	t.Parallel()
	h := startHost(t, ownDocument)
	db := storetest.Open(t, storetest.URL(t), nil)
	url := h.URL + "/client.json"
	config := oauth.DocumentsConfig{
		DB: db, Client: client(t, nil, h), Log: slog.New(slog.DiscardHandler),
		Static: map[string][]byte{url: []byte(document(url, "https://app.example/offline"))},
	}
	c, err := documents(t, config).Client(t.Context(), url)
	if err != nil || len(c.RedirectURIs) != 1 || c.RedirectURIs[0] != "https://app.example/offline" || h.asked.Load() != 0 {
		t.Errorf("Client = %+v, %v after %d requests, want the operator's without one", c, err, h.asked.Load())
	}
	config.Static = map[string][]byte{"https://other.example/client": []byte(document(url))}
	if _, err := oauth.NewDocuments(config); err == nil || !strings.Contains(err.Error(), "https://other.example/client") {
		t.Errorf("NewDocuments with a document of another URL = %v, want an error that names it", err)
	}
}

// What an older release kept may break the rules of this one: it is read anew, and is no last known good.
func TestStoredDocumentIsHeldToTheRulesOfToday(t *testing.T) {
	t.Parallel()
	h := startHost(t, ownDocument)
	d := newDesk(t, nil, h)
	url := h.URL + "/client.json"
	now := d.db.Now()
	if err := d.db.System().SaveClientDocument(t.Context(), store.ClientDocument{
		URL: url, Document: []byte(document(url, "javascript:alert(1)")), FetchedAt: now, FreshUntil: now.Add(time.Hour),
	}); err != nil {
		t.Fatal(err)
	}
	if got := d.good(t, url); got[0] != "http://localhost/callback" {
		t.Errorf("redirect URIs = %v, want those that are at the URL", got)
	}
}

func TestDatabaseAwayIsNotTheClientsFault(t *testing.T) {
	t.Parallel()
	h := startHost(t, ownDocument)
	dsn := storetest.PrivateURL(t)
	db := storetest.Open(t, dsn, nil)
	d := documents(t, oauth.DocumentsConfig{DB: db, Client: client(t, nil, h), Log: slog.New(slog.DiscardHandler)})
	restore := storetest.Outage(t, dsn)
	defer restore()
	if c, err := d.Client(t.Context(), h.URL+"/client.json"); !store.IsUnavailable(err) || h.asked.Load() != 0 {
		t.Errorf("Client = %+v, %v after %d requests, want unavailable without one", c, err, h.asked.Load())
	}
}

// JSON that Postgres does not take, or not gladly, stands in members that nobody asks for, or in a name.
func TestDocumentThatPostgresWouldNotTakeIsKeptAsWhatWasUnderstood(t *testing.T) {
	t.Parallel()
	h := startHost(t, func(w http.ResponseWriter, r *http.Request) {
		own := document("https://" + r.Host + r.URL.Path)
		own = strings.Replace(own, `"App"`, `"A\u0000pp"`, 1)
		deep := strings.Repeat("[", 2000) + strings.Repeat("]", 2000)
		answer(w, strings.Replace(own, "{", `{"\u0000": "\u0000", "number": 1e999999, "deep": `+deep+`, `, 1))
	})
	d := newDesk(t, nil, h)
	url := h.URL + "/client.json"
	read, err := d.Client(t.Context(), url)
	if err != nil || !d.stored(t, url) {
		t.Fatalf("Client = %+v, %v, want it, and kept", read, err)
	}
	again, err := d.Client(t.Context(), url)
	if diff := cmp.Diff(read, again); err != nil || diff != "" || h.asked.Load() != 1 {
		t.Errorf("from the database: %v, after %d requests (-read +kept):\n%s", err, h.asked.Load(), diff)
	}
}
