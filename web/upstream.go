package web

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Health is how an upstream does, as far as the gateway has seen.
type Health string

// The three there are, in the words they are shown with.
const (
	Healthy  Health = "healthy"
	Failing  Health = "failing"
	NotTried Health = "not tried yet"
)

func (h Health) dot() string {
	switch h {
	case Healthy:
		return "ok"
	case Failing:
		return "bad"
	}
	return "off"
}

// Upstream is what lists and heads say of one MCP server behind the gateway.
type Upstream struct {
	Name     string // its tools are <name>__<tool>
	URL      string // of its page; its acts are below it
	Address  string // where the server is: https://mcp.linear.app/mcp
	Health   Health
	Tools    int       // that agents can use
	LeftOut  int       // that it lists and agents cannot use
	ListedAt time.Time // when its tools were last listed; zero: never
	Error    string    // what went wrong last, in plain words; "" nothing
	Next     string    // what to do about it
	AddedBy  string    // "you", or a name
	AddedAt  time.Time
}

// Upstreams is the page of all upstreams, and of the secrets that their headers
// name.
type Upstreams struct {
	Shell   Shell
	Now     time.Time
	Rows    []Upstream
	Secrets Secrets
	Change  bool // the person may add, change and remove
}

// UpstreamNew is the form that adds an upstream.
type UpstreamNew struct {
	Shell      Shell
	Name       Field
	Address    Field
	Headers    []Header
	Secrets    []string // the names there are to refer to
	TrustHints bool
	ListAll    bool
	Include    Field // a name a line
	Exclude    Field // a name a line
	Error      string
}

// Header is one row of the form: a header that goes with every request. A value
// is drawn again only where it names a secret instead of being one.
type Header struct {
	Name  Field
	Value Field
}

// UpstreamChange is the page that changes an upstream: its settings, and its
// headers, which are all set anew.
type UpstreamChange struct {
	Shell      Shell
	Upstream   Upstream
	Headers    []Header
	Secrets    []string
	TrustHints bool
	ListAll    bool
	Include    Field
	Exclude    Field
	Error      string // of the settings
	HeadError  string // of the headers
}

// UpstreamDetail is the page of one upstream.
type UpstreamDetail struct {
	Shell      Shell
	Now        time.Time
	Upstream   Upstream
	Show       ToolFilter
	Tools      []UpstreamTool // all of them, whatever is shown
	Headers    []string       // their names
	Uses       []string       // the secrets that they take
	TrustHints bool
	Listed     Listing
	Include    []string
	Exclude    []string
	Change     bool // the person may test, change and remove it
}

// Listing is whether agents are shown all tools of an upstream.
type Listing string

// The ways, in the words they are shown with.
const (
	ListedAll     Listing = "All its tools, to every agent"
	ListedNone    Listing = "What each agent promotes"
	ListedUnknown Listing = "Decided when its tools are first listed"
)

// UpstreamTool is one tool that an upstream lists.
type UpstreamTool struct {
	Name     string // as agents call it: linear__create_issue
	Original string // as the upstream calls it
	Summary  string // the first line of its description
	Effects  Effects
	Version  int    // counts up when the upstream changes it
	LeftOut  string // why agents cannot use it; "": they can
}

// ToolFilter is which of an upstream's tools are shown.
type ToolFilter string

// The filters, as they stand in an address. Any other word shows all.
const (
	ShowAll     ToolFilter = ""
	ShowReads   ToolFilter = "reads"
	ShowChanges ToolFilter = "changes"
	ShowLeftOut ToolFilter = "left-out"
)

func (f ToolFilter) has(t UpstreamTool) bool {
	switch f {
	case ShowReads:
		return t.LeftOut == "" && t.Effects == Reads
	case ShowChanges:
		return t.LeftOut == "" && t.Effects != Reads
	case ShowLeftOut:
		return t.LeftOut != ""
	}
	return true
}

// toolTab is one filter with how many tools it shows.
type toolTab struct {
	label   string
	url     string
	count   int
	current bool
}

func (v UpstreamDetail) tabs() []toolTab {
	var tabs []toolTab
	for _, f := range []struct {
		show  ToolFilter
		label string
	}{{ShowAll, "All"}, {ShowReads, "Read-only"}, {ShowChanges, "Can change things"}, {ShowLeftOut, "Left out"}} {
		tab := toolTab{label: f.label, url: v.Upstream.URL, count: len(v.filtered(f.show)), current: f.show == v.Show}
		if f.show != ShowAll {
			tab.url += "?show=" + string(f.show)
		}
		tabs = append(tabs, tab)
	}
	if !slices.ContainsFunc(tabs, func(t toolTab) bool { return t.current }) {
		tabs[0].current = true
	}
	return tabs
}

func (v UpstreamDetail) filtered(f ToolFilter) []UpstreamTool {
	return slices.DeleteFunc(slices.Clone(v.Tools), func(t UpstreamTool) bool { return !f.has(t) })
}

// names is a list of names in a sentence.
func names(list []string) string { return shown(strings.Join(list, ", ")) }

// UpstreamRemove is the question before an upstream is removed, as a page.
type UpstreamRemove struct {
	Shell    Shell
	Upstream Upstream
}

func (v UpstreamDetail) remove() confirm { return removeQuestion(v.Upstream) }

func removeQuestion(u Upstream) confirm {
	var ends []string
	if u.Tools > 0 {
		ends = append(ends, plural(u.Tools, "tool")+", for every agent", "Every session that agents have open to it, and the calls in them")
	}
	return confirm{
		ID:       "remove",
		Question: "Remove " + shown(u.Name) + "?",
		Ends:     append(ends, "The upstream itself, with its headers"),
		Stays:    "Stays: the organisation’s secrets, and every past call in Activity",
		Action:   u.URL + "/remove",
		Verb:     "Remove " + shown(u.Name),
		Keep:     "Keep it",
		Back:     u.URL,
	}
}

// noteKind is how serious it is: an upstream may be well and still have something
// to say.
func (u Upstream) noteKind() string {
	if u.Health == Failing {
		return "bad"
	}
	return "warn"
}

func (v UpstreamNew) fresh() bool {
	return v.Name.Error == "" && v.Address.Error == "" && v.Include.Error == "" && v.Exclude.Error == "" &&
		!slices.ContainsFunc(v.Headers, func(h Header) bool { return h.Name.Error != "" || h.Value.Error != "" })
}

// headerName and headerValue are the names of the controls of row i. What stands
// in a value may be a secret itself.
func headerName(i int) string  { return "header_" + strconv.Itoa(i+1) }
func headerValue(i int) string { return "secret_header_" + strconv.Itoa(i+1) }

func (v UpstreamDetail) noTools() string {
	switch {
	case v.Upstream.ListedAt.IsZero():
		return "It has not been listed yet. Test connects and lists its tools."
	case v.Upstream.Error != "":
		return "When the upstream answers again, its tools are listed here."
	}
	return "The upstream answers and lists no tools. When it says that it has some, they appear here."
}

func (v UpstreamDetail) noneSuch() string {
	switch v.Show {
	case ShowReads:
		if !v.TrustHints {
			return "None: the upstream’s hints are not trusted, so every tool counts as one that can change things."
		}
		return "None of its tools is read-only."
	case ShowChanges:
		return "None of its tools can change anything."
	}
	return "Nothing is left out: agents can use every tool it lists."
}

// some says whether only some of the tools are asked for.
func (v UpstreamNew) some() bool { return v.Include != Field{} || v.Exclude != Field{} }
