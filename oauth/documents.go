package oauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

const (
	maxDocument     = 5 << 10 // bytes
	documentTimeout = 5 * time.Second
	// maxFetches is how many documents a replica reads at once: that many connections are all that strangers can make it hold.
	maxFetches = 8
	// A document is read anew when its cache headers say so, but neither more often nor more rarely than this.
	minFresh, maxFresh = 5 * time.Minute, 24 * time.Hour
	// failureLife is how long a host to which no connection was had, or a URL that held no good document, is not asked again.
	failureLife = 45 * time.Second
	maxFailures = 1000
)

// DocumentsConfig is what a Documents is made of.
type DocumentsConfig struct {
	DB     *store.DB
	Client *egress.Client
	// Static are documents by URL that an operator gives, for where the hosts of clients cannot be reached. They are used
	// in place of what is at the URL.
	Static map[string][]byte
	Log    *slog.Logger
}

// Documents are the clients that are known by a document. It is safe for concurrent use.
type Documents struct {
	db      *store.DB
	client  *egress.Client
	static  map[string]Client
	log     *slog.Logger
	timeout time.Duration

	flight singleflight.Group
	places chan struct{} // one is taken while a document is read

	mu       sync.Mutex
	failures *simplelru.LRU[string, *failure] // by host, or by URL
}

// NewDocuments makes a Documents. A static document that is not good is an error.
func NewDocuments(c DocumentsConfig) (*Documents, error) {
	d := &Documents{
		db: c.DB, client: c.Client, log: c.Log, timeout: documentTimeout,
		static: make(map[string]Client, len(c.Static)), places: make(chan struct{}, maxFetches),
	}
	for url, body := range c.Static {
		client, err := parseDocument(url, body)
		if err != nil {
			return nil, fmt.Errorf("client document %q: %w", url, err)
		}
		d.static[url] = client
	}
	var err error
	d.failures, err = simplelru.NewLRU[string, *failure](maxFailures, nil)
	return d, err
}

// Client returns the client whose id is a URL. A document that is not good is reason.InputInvalid, with a sentence for
// the person who was sent here by the app; one that cannot be read now is reason.Unavailable. It is read only when the
// last known good is no longer fresh, and that is used where it cannot be read.
func (d *Documents) Client(ctx context.Context, url string) (Client, error) {
	if err := isDocumentURL(url); err != nil {
		return Client{}, err
	}
	if c, ok := d.static[url]; ok {
		return c, nil
	}
	// What one asks for is everybody's: it outlives the request that began it.
	found, err, _ := d.flight.Do(url, func() (any, error) { return d.lookUp(context.WithoutCancel(ctx), url) })
	c, _ := found.(Client)
	return c, err
}

func (d *Documents) lookUp(ctx context.Context, url string) (Client, error) {
	known, row, err := d.stored(ctx, url)
	if err != nil || known.ID != "" && d.db.Now().Before(row.FreshUntil) {
		return known, err
	}
	c, err := d.refresh(ctx, url)
	var failed *failure
	switch {
	case !errors.As(err, &failed):
		return c, err
	case known.ID == "" || failed.broken:
		return Client{}, failed.refusal
	}
	return known, nil
}

// stored is the last known good: a zero Client where there is none, or none that is good by the rules of today.
func (d *Documents) stored(ctx context.Context, url string) (Client, store.ClientDocument, error) {
	row, err := d.db.System().ClientDocument(ctx, url)
	if store.IsAbsent(err) {
		return Client{}, row, nil
	}
	if err != nil {
		return Client{}, row, err
	}
	c, err := parseDocument(url, row.Document)
	if err != nil {
		d.log.WarnContext(ctx, "stored client document is not good", slog.String("url", url), slog.Any("error", err))
		return Client{}, row, nil
	}
	return c, row, nil
}

// A failure is why a document was not had.
type failure struct {
	refusal *reason.Refusal
	of      string // the host, where no connection to it was had; else the URL, for whose sake no other client of the host is kept away
	broken  bool   // what was read is the client's, and breaks a rule: that counts, not what it said before
	until   time.Time
}

// Error implements error.
func (f *failure) Error() string { return f.refusal.Error() }

// refresh reads a document and keeps it. A *failure is why there is none; other errors are of the database.
func (d *Documents) refresh(ctx context.Context, url string) (Client, error) {
	if f := d.remembered(url); f != nil {
		return Client{}, f
	}
	leave, err := d.enter(ctx, url)
	if err != nil {
		return Client{}, err
	}
	defer leave()
	c, fresh, err := d.fetch(ctx, url)
	var failed *failure
	if errors.As(err, &failed) {
		d.remember(failed)
		d.log.WarnContext(ctx, "client document not read; the last known good is used where there is one",
			slog.String("url", url), slog.String("error", failed.refusal.Message), slog.Bool("refused", failed.broken))
		return Client{}, failed
	}
	if err != nil {
		return Client{}, err
	}
	now := d.db.Now()
	return c, d.db.System().SaveClientDocument(ctx, store.ClientDocument{URL: url, Document: c.Document, FetchedAt: now, FreshUntil: now.Add(fresh)})
}

// enter takes one of the places of those that read, when it is had in time.
func (d *Documents) enter(ctx context.Context, url string) (leave func(), err error) {
	ctx, stop := context.WithTimeout(ctx, d.timeout)
	defer stop()
	select {
	case d.places <- struct{}{}:
		return func() { <-d.places }, nil
	case <-ctx.Done():
		return nil, &failure{refusal: unread(reason.Unavailable, "too many others are being read.", "Try again in a minute."), of: url}
	}
}

// fetch reads a document, and says how long it is fresh.
func (d *Documents) fetch(ctx context.Context, url string) (Client, time.Duration, error) {
	hosts, err := egress.ParseHosts("https://" + documentHost(url))
	if err != nil {
		return Client{}, 0, &failure{refusal: wayOut(err), of: documentHost(url)}
	}
	s, err := d.client.Stream(ctx, egress.Request{
		URL: url, Hosts: hosts, OwnPort: true, Header: http.Header{"Accept": {"application/json"}},
		Timeout: d.timeout, AnswerLimit: maxDocument,
	})
	if err != nil {
		f := &failure{refusal: wayOut(err), of: url}
		if !errors.Is(err, egress.ErrSent) { // no connection was had: that is of the host
			f.of = documentHost(url)
		}
		return Client{}, 0, f
	}
	defer func() { _ = s.Close() }()
	if refusal := checkAnswer(url, s.Status, s.Header); refusal != nil {
		return Client{}, 0, &failure{refusal: refusal, of: url}
	}
	body, err := s.ReadAll()
	if reason.Of(err).Word == reason.TooLarge {
		return Client{}, 0, &failure{refusal: badDocument(url, "it is longer than %d bytes", maxDocument), of: url}
	}
	if err != nil {
		return Client{}, 0, &failure{refusal: wayOut(err), of: url}
	}
	m, err := readMembers(url, body)
	if err != nil {
		return Client{}, 0, &failure{refusal: reason.Of(err), of: url}
	}
	c, err := m.client(url)
	if err != nil {
		return Client{}, 0, &failure{refusal: reason.Of(err), of: url, broken: true}
	}
	return c, freshFor(s.Header), nil
}

// checkAnswer says why an answer is no document, before its body is read.
func checkAnswer(url string, status int, h http.Header) *reason.Refusal {
	switch {
	case status == http.StatusOK:
	case status >= http.StatusInternalServerError, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
		return unread(reason.Unavailable, fmt.Sprintf("%s answers with status %d.", documentHost(url), status), "Try again in a minute.")
	case status >= http.StatusMultipleChoices && status < http.StatusBadRequest && status != http.StatusNotModified:
		return badDocument(url, "it is redirected elsewhere, and that is not followed")
	default:
		return badDocument(url, "the answer has status %d, not 200", status)
	}
	if e := h.Get("Content-Encoding"); e != "" && e != "identity" {
		return badDocument(url, "it comes in an encoding that was not asked for")
	}
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || kind != "application/json" && (!strings.HasPrefix(kind, "application/") || !strings.HasSuffix(kind, "+json")) {
		return badDocument(url, "its Content-Type is not application/json")
	}
	return nil
}

// wayOut makes a sentence for a person of why egress did not bring an answer.
func wayOut(err error) *reason.Refusal {
	r := reason.Of(err)
	switch r.Word {
	case reason.UpstreamUnavailable, reason.Timeout:
		return unread(reason.Unavailable, r.Message, "Try again in a minute.")
	case reason.Internal:
		return r
	}
	return unread(reason.InputInvalid, r.Message, "Tell the app's maker.")
}

// unread is the refusal of what was not even read; why is a sentence.
func unread(word reason.Word, why, next string) *reason.Refusal {
	return reason.Refuse(word, "The app's document cannot be read: %s %s", why, next).Field("client_id")
}

// remembered is the failure for whose sake a URL is not asked again yet; nil where there is none.
func (d *Documents) remembered(url string) *failure {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, of := range []string{documentHost(url), url} {
		if f, ok := d.failures.Get(of); ok && d.db.Now().Before(f.until) {
			return f
		}
	}
	return nil
}

func (d *Documents) remember(f *failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f.until = d.db.Now().Add(failureLife)
	d.failures.Add(f.of, f)
}

// freshFor is how long an answer may be used without asking again (RFC 9111 §4.2), within the bounds of ours. One that
// does not say, or says not at all, has the least.
func freshFor(h http.Header) time.Duration {
	seconds := int64(math.MaxInt64)
	said := false
	for _, line := range h.Values("Cache-Control") {
		for directive := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
			switch strings.ToLower(name) {
			case "no-store", "no-cache":
				return minFresh
			case "max-age":
				said = true
				seconds = min(seconds, deltaSeconds(value))
			}
		}
	}
	if !said {
		return minFresh
	}
	seconds = max(0, seconds-deltaSeconds(h.Get("Age")))
	return min(max(time.Duration(min(seconds, int64(maxFresh/time.Second)))*time.Second, minFresh), maxFresh)
}

// deltaSeconds reads a number of seconds (RFC 9111 §1.2.2): as many as there are of one too large, 0 of what is none.
func deltaSeconds(s string) int64 {
	n, err := strconv.ParseInt(strings.Trim(s, `"`), 10, 64)
	if n < 0 || err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return n
}
