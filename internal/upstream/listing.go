package upstream

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/reason"
	"github.com/getgraft/graft/internal/store"
)

// Refresh lists an upstream now. An error that says why it could not be listed is kept with the upstream, whose last
// known tools stay.
func (s *Source) Refresh(ctx context.Context, c store.Caller, id store.UpstreamID) error {
	if !c.MayManage() {
		return reason.Refuse(reason.Forbidden, "Your role does not allow it. Ask an admin of the organisation.")
	}
	v, err := s.read(ctx, c)
	if err != nil {
		return err
	}
	t := v.byID[id]
	if t == nil {
		return reason.NotFound
	}
	session, err := s.openToList(ctx, t, nil)
	if err == nil {
		defer bid(session)
	}
	defer s.views.Forget(c.Org) // here at once, for who asked; elsewhere the bus says it
	return s.list(ctx, c, t, session, err)
}

// openToList opens a session of our own, which no agent's call goes through.
func (s *Source) openToList(ctx context.Context, t *target, changed func()) (*Session, error) {
	if t.refusal != nil {
		return nil, t.refusal
	}
	d := t.dial
	d.OnListChanged = changed
	session, err := Open(ctx, d)
	if err != nil {
		return nil, own(t, err)
	}
	return session, nil
}

// list lists t in session, unless it could not be opened, and keeps what came of it.
func (s *Source) list(ctx context.Context, c store.Caller, t *target, session *Session, err error) error {
	var tools []RemoteTool
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, listTime)
		if tools, err = session.Tools(limited); err != nil {
			err = own(t, err)
		}
		cancel()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	remark := ""
	if r := reason.Of(err); len(tools) > 0 && r.Word == reason.TooLarge {
		remark = fmt.Sprintf("Its first %d tools were taken. %s", len(tools), r.Message)
	} else if err != nil {
		if r.Word == reason.Internal {
			return err
		}
		return errors.Join(err, s.c.DB.As(ctx, c, func(tx *store.Tx) error {
			_, err := tx.RecordListingFailure(ctx, t.ID, string(r.Word), r.Message)
			return err
		}))
	}
	rows := make([]store.UpstreamTool, 0, len(tools))
	seen := make(map[string]bool, len(tools))
	for i, listed := range tools {
		row := row(t.Upstream, listed)
		row.Position = int32(i) //nolint:gosec // at most MaxTools
		// Once, unless a tool is called what the second is then called.
		for name := row.Original; seen[row.Original]; name = row.Original {
			row.Original, row.LeftOut = fmt.Sprintf("%s (again, %d)", name, i+1), "It is listed twice under one name. The first is used."
		}
		seen[row.Original] = true
		rows = append(rows, row)
	}
	return s.c.DB.As(ctx, c, func(tx *store.Tx) error {
		_, err := tx.RecordListing(ctx, t.ID, rows, remark)
		return err
	})
}

// listTime bounds one listing: each of its pages has its own time, and there may be many.
const listTime = 2 * time.Minute

const (
	maxDefinition  = 1 << 20 // bytes of one tool
	maxAnnotations = 64 << 10
	maxToolName    = 512
)

// row is a tool as it is kept, with the sentence that says why where it is not offered.
func row(u store.Upstream, t RemoteTool) store.UpstreamTool {
	r := store.UpstreamTool{
		Original: storable(t.Name, maxToolName), Name: catalog.WireName(u.Name, t.Name), Hash: digest(t), InputSchema: []byte(`{"type":"object","properties":{}}`),
	}
	size := len(t.Name) + len(t.Title) + len(t.Description) + len(t.InputSchema) + len(t.OutputSchema) + len(t.Annotations) + len(t.Meta)
	switch {
	case t.Fault != "":
		r.LeftOut = t.Fault
	case r.Original != t.Name:
		r.LeftOut = fmt.Sprintf("Its name is longer than %d bytes, or has a character that cannot be kept.", maxToolName)
	case size > maxDefinition:
		r.LeftOut = fmt.Sprintf("Its definition has %d bytes; at most %d are taken.", size, maxDefinition)
	case slices.Contains(u.ExcludeTools, t.Name):
		r.LeftOut = "It is on the list of tools that are left out."
	case len(u.IncludeTools) > 0 && !slices.Contains(u.IncludeTools, t.Name):
		r.LeftOut = "It is not on the list of tools that are taken."
	}
	if size > maxDefinition {
		return r
	}
	r.Title, r.Description = storable(t.Title, 1000), storable(t.Description, maxDefinition)
	if len(t.Annotations) <= maxAnnotations && t.Annotations.Kind() == '{' {
		r.Annotations = t.Annotations
	}
	schema, err := catalog.NormalizeInput(t.InputSchema)
	if err != nil {
		if r.LeftOut == "" {
			r.LeftOut = capital(storable(err.Error(), 1000)) + "."
		}
		return r
	}
	r.InputSchema, r.OutputSchema = schema, catalog.NormalizeOutput(t.OutputSchema)
	return r
}

// digest is of the definition as the upstream gave it. Space and the order of members do not count.
func digest(t RemoteTool) []byte {
	h := sha256.New()
	for _, part := range []any{t.Name, t.Title, t.Description, t.InputSchema, t.OutputSchema, t.Annotations, t.Fault} {
		text, err := json.Marshal(part)
		if err != nil {
			text = fmt.Appendf(nil, "%q", part) // no JSON, and the same each time
		}
		v := jsontext.Value(text)
		_ = v.Format(jsontext.ReorderRawObjects(true)) // what is no JSON stays as it is
		_, _ = fmt.Fprintf(h, "%d\n", len(v))
		_, _ = h.Write(v)
	}
	return h.Sum(nil)
}

// storable is text as Postgres and pages take it: UTF-8 without control characters but line ends and tabs, at most that
// many bytes.
func storable(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	if len(s) <= most {
		return s
	}
	s = s[:most]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}

func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

const (
	// settle is how long after the upstream told of a change it is listed: changes come in rows.
	settle = 500 * time.Millisecond
	// maxRest bounds how long after a listing it is not listed again because of what it tells.
	maxRest = time.Minute
)

// A lastListing is when the upstream was listed last, and how long that took.
type lastListing struct {
	at   time.Time
	took time.Duration
}

// rest is how long to wait with the next listing, now that the upstream told of a change: at least settle, and until ten
// times as long has gone by as the last one took. Some tell of a change whenever they are listed.
func (l lastListing) rest() time.Duration {
	return max(settle, time.Until(l.at.Add(min(10*l.took, maxRest))))
}

// watch makes sure that somebody notices when what l leads to changes, for as long as it is used.
func (s *Source) watch(l *line) {
	if !l.watched.CompareAndSwap(false, true) {
		return
	}
	if !s.pool.begin(func() { s.listen(s.pool.ctx, l) }) {
		l.watched.Store(false)
	}
}

// listen lists l's upstream when it tells of a change, when whether it can be reached has changed, and when its list is
// older than ListEvery: then one of all replicas does.
func (s *Source) listen(ctx context.Context, l *line) {
	defer l.watched.Store(false)
	var session *Session
	var revision string
	end := func() {
		if session != nil {
			bid(session)
			session = nil
		}
	}
	defer func() { end() }()
	var last lastListing
	told, mute := false, false // mute: it does not tell of changes, and a session of our own is for nothing but a listing
	for {
		t, err := s.targetOf(ctx, l)
		if err != nil || t == nil {
			return // it begins again with the next call
		}
		if revision != t.revision {
			end()
			revision, mute = t.revision, false
		}
		if due := told || t.State == store.UpstreamFailing || s.claim(ctx, l, t); due || session == nil && !mute {
			began := time.Now()
			if session == nil {
				session, err = s.openToList(ctx, t, l.tell)
			}
			if due {
				err = s.list(ctx, l.caller, t, session, err)
				last = lastListing{time.Now(), time.Since(began)}
			}
			if err != nil && ctx.Err() == nil {
				s.c.Log.WarnContext(ctx, "upstream not listed", slog.String("org", l.caller.Org.String()), slog.String("upstream", t.Name), slog.Any("err", err))
				end()
			}
		}
		if session != nil {
			session.Listen()
			if mute = !session.Server().ListChanged; mute {
				end()
			}
		}
		if told = l.wait(ctx, s.c.ListEvery, last); ctx.Err() != nil || time.Since(time.Unix(0, l.used.Load())) > s.c.IdleAfter {
			return
		}
	}
}

func (s *Source) targetOf(ctx context.Context, l *line) (*target, error) {
	v, err := s.view(ctx, l.caller)
	if err != nil {
		return nil, err
	}
	return v.byID[l.id], nil
}

// claim reports whether it is time to list t again, and ours to do it.
func (s *Source) claim(ctx context.Context, l *line, t *target) (ours bool) {
	if t.LastListedAt != nil && s.c.DB.Now().Sub(*t.LastListedAt) < s.c.ListEvery {
		return false
	}
	err := s.c.DB.As(ctx, l.caller, func(tx *store.Tx) (err error) {
		ours, err = tx.ClaimListing(ctx, l.id, s.c.ListEvery)
		return err
	})
	return ours && err == nil
}

// wait waits until there is news, or as long as that, and reports whether there is. News wait until last has had its rest.
func (l *line) wait(ctx context.Context, most time.Duration, last lastListing) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return false
	case <-l.news:
	}
	pause(ctx, last.rest())
	select { // what came meanwhile is listed with it
	case <-l.news:
	default:
	}
	return true
}
