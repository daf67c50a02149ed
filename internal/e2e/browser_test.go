package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/getgraft/graft/internal/e2e"
)

// sound is a page without a fault: it tells the scheme by its colours and counts clicks with a script.
const sound = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Sound</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
<style>:root { color-scheme: light dark } body { background: light-dark(#fff, #000); color: light-dark(#000, #fff) }</style></head>
<body><main><h1>Sound</h1>
<form action="/greet" method="post"><label>Name <input name="name" value="nobody"></label> <button>Greet</button></form>
<p id="script">off</p></main>
<script src="/page.js"></script></body></html>`

// faulty has an image without a text alternative and pale text on white.
const faulty = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Faulty</title><link rel="icon" href="data:,"></head>
<body><main><h1>Faulty</h1><img src="data:image/gif;base64,R0lGODlhAQABAAAAACw="><p style="color:#ddd;background:#fff">pale</p></main></body></html>`

// site serves both pages, a form's answer, and pages that complain.
func site(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	page := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprint(w, body)
		}
	}
	mux.HandleFunc("GET /{$}", page(sound))
	mux.HandleFunc("GET /faulty", page(faulty))
	mux.HandleFunc("GET /throws", page(sound+`<script>throw new Error("planted")</script>`))
	mux.HandleFunc("GET /wide", page(`<!doctype html><title>w</title><div style="width:5000px">wide</div>`))
	mux.HandleFunc("GET /refused", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
		page(`<!doctype html><title>r</title><script>document.title = "ran"</script>`)(w, r)
	})
	mux.HandleFunc("GET /page.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = fmt.Fprint(w, `document.querySelector("#script").textContent = "on"`)
	})
	mux.HandleFunc("POST /greet", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		page(`<!doctype html><title>g</title><p id="greeting">Hello `+r.PostFormValue("name")+`</p>`)(w, r)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func TestBrowser(t *testing.T) {
	t.Parallel()
	url, browser := site(t), e2e.StartBrowser(t)

	t.Run("a sound page has no violation in any view", func(t *testing.T) {
		t.Parallel()
		browser.Each(t, func(t *testing.T, p *e2e.Page) {
			if got := p.Visit(url); got != http.StatusOK {
				t.Errorf("Visit() = %d, want 200", got)
			}
			p.SeeText("#script", "on")
			p.Axe()
			if got := p.Overflow(); got != 0 {
				t.Errorf("Overflow() = %d, want 0", got)
			}
		})
	})
	t.Run("a view has its width and scheme", func(t *testing.T) {
		t.Parallel()
		for _, view := range e2e.Views() {
			p := browser.Page(t, view)
			p.Visit(url)
			const look = `innerWidth + " " + getComputedStyle(document.body).backgroundColor`
			want := fmt.Sprintf("%d rgb(255, 255, 255)", view.Width)
			if view.Dark {
				want = fmt.Sprintf("%d rgb(0, 0, 0)", view.Width)
			}
			if got := e2e.Read(p, chromedp.Evaluate[string](look)); got != want {
				t.Errorf("%s: look = %q, want %q", view, got, want)
			}
		}
	})
	t.Run("planted faults are found", func(t *testing.T) {
		t.Parallel()
		p := browser.Page(t, e2e.Phone)
		p.Visit(url + "/faulty")
		var rules []string
		for _, v := range p.Violations() {
			rules = append(rules, v.Rule)
		}
		for _, want := range []string{"image-alt", "color-contrast"} {
			if !slices.Contains(rules, want) {
				t.Errorf("Violations() = %v, want %s among them", rules, want)
			}
		}
		p.Visit(url + "/wide")
		if got := p.Overflow(); got < 4000 {
			t.Errorf("Overflow() = %d, want the 5000 px element to show", got)
		}
	})
	t.Run("a form works, with scripts and without", func(t *testing.T) {
		t.Parallel()
		for _, noScript := range []bool{false, true} {
			view := e2e.Phone
			view.NoScript = noScript
			p := browser.Page(t, view)
			p.Visit(url)
			if got, want := p.Text("#script"), map[bool]string{false: "on", true: "off"}[noScript]; got != want {
				t.Errorf("%s: #script = %q, want %q", view, got, want)
			}
			p.Axe()
			p.Fill("input[name=name]", "Ada")
			if got := p.Submit("button"); got != http.StatusAccepted {
				t.Errorf("%s: Submit() = %d, want 202", view, got)
			}
			p.SeeText("#greeting", "Hello")
			if got, want := p.Text("#greeting"), "Hello Ada"; got != want {
				t.Errorf("%s: greeting = %q, want %q", view, got, want)
			}
			if got, want := p.Path(), "/greet"; got != want {
				t.Errorf("%s: Path() = %q, want %q", view, got, want)
			}
		}
	})
	t.Run("two pages share no cookie", func(t *testing.T) {
		t.Parallel()
		first, second := browser.Page(t, e2e.Desk), browser.Page(t, e2e.Desk)
		first.Visit(url)
		second.Visit(url)
		e2e.Read(first, chromedp.Evaluate[string](`document.cookie = "who=first"`))
		if got := e2e.Read(second, chromedp.Evaluate[string](`document.cookie`)); got != "" {
			t.Errorf("cookie of the second page = %q, want none", got)
		}
	})
	t.Run("a complaint fails the test", func(t *testing.T) {
		t.Parallel()
		for path, want := range map[string]string{"/throws": "planted", "/refused": "Content Security Policy", "/missing": ""} {
			inner := &recorder{TB: t}
			p := browser.Page(inner, e2e.Desk)
			p.Visit(url + path)
			inner.finish()
			got := strings.Join(inner.errors, "\n")
			if !strings.Contains(got, want) || (want == "") != (got == "") {
				t.Errorf("%s: complaints = %q, want %q in them", path, got, want)
			}
		}
	})
	t.Run("a screenshot is a picture", func(t *testing.T) {
		t.Parallel()
		p := browser.Page(t, e2e.Phone)
		p.Visit(url)
		png, err := os.ReadFile(p.Screenshot("sound"))
		if err != nil || !strings.HasPrefix(string(png), "\x89PNG") {
			t.Errorf("Screenshot() = %d bytes, %v, want a PNG", len(png), err)
		}
	})
}

// recorder is a test that can fail without failing its parent, and ends when told.
type recorder struct {
	testing.TB
	errors   []string
	cleanups []func()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) finish() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}
