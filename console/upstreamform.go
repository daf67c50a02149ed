package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/upstream"
	"github.com/getgraft/graft/web"
)

// readSettings reads what both forms have into in. A box that is not ticked leaves it to the size of the list.
func readSettings(form url.Values, in store.UpstreamSettings) store.UpstreamSettings {
	in.TrustHints = form.Get("trust_hints") != ""
	in.IncludeTools, in.ExcludeTools = readLines(form.Get("include")), readLines(form.Get("exclude"))
	if form.Get("list_all") != "" {
		all := true
		in.ListAll = &all
	}
	return in
}

func readLines(text string) (list []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}

// headerRows is how many headers a form may have, and moreAtOnce by how many it grows.
const (
	headerRows = 32
	moreAtOnce = 2
)

// headers are the rows of a form, as they were typed.
type headers []upstream.Header

func readHeaders(form url.Values) (list headers) {
	for i := 1; i <= headerRows && form.Has("header_"+strconv.Itoa(i)); i++ {
		n := strconv.Itoa(i)
		list = append(list, upstream.Header{Name: strings.TrimSpace(form.Get("header_" + n)), Value: strings.TrimSpace(form.Get("secret_header_" + n))})
	}
	return list
}

// filled are the rows that say anything.
func (list headers) filled() (some []upstream.Header) {
	for _, h := range list {
		if h.Name != "" || h.Value != "" {
			some = append(some, h)
		}
	}
	return some
}

// shownAgain are the rows as a form is drawn again. A value is drawn only where it refers to a secret: it may be one.
func shownAgain(list headers) []web.Header {
	rows := make([]web.Header, len(list))
	for i, h := range list {
		rows[i].Name.Value = h.Name
		if onlyRefers(h.Value) {
			rows[i].Value.Value = h.Value
		}
	}
	return rows
}

// onlyRefers reports whether a header's value holds no secret of its own: ${NAME}, after the word of a scheme at most.
func onlyRefers(value string) bool {
	before, rest, found := strings.Cut(value, "${")
	name, after, closed := strings.Cut(rest, "}")
	scheme := strings.TrimSpace(before)
	word := func(r rune) bool { return !unicode.IsLetter(r) }
	return found && closed && after == "" && store.CheckSecretName(name) == nil && len(scheme) <= 8 && !strings.ContainsFunc(scheme, word)
}

func moreRows(rows []web.Header) []web.Header {
	return append(rows, make([]web.Header, max(0, min(moreAtOnce, headerRows-len(rows))))...)
}

// blame puts a sentence beside the header that it names, else beside the first.
func blame(rows []web.Header, sentence string) []web.Header {
	at := 0
	for i, row := range rows {
		if name := http.CanonicalHeaderKey(row.Name.Value); name != "" && strings.Contains(sentence, name) {
			at = i
		}
	}
	if len(rows) == 0 {
		rows = make([]web.Header, 1)
	}
	rows[at].Name.Error = sentence
	return rows
}
