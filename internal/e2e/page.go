package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience bounds one step of a visit, page load included, on a machine that is busy with other tests.
const patience = 30 * time.Second

// Page is one tab, driven as its visitor would. Every method fails the test when its step does not come true within
// half a minute. An uncaught exception, a console error or a refused script, style or request (CSP) fails it too; a
// failed load that the test meant (a 404 it asked for) does not. A failed test leaves a picture in .cache/screenshots.
type Page struct {
	t    testing.TB
	ctx  context.Context
	view View

	mu          sync.Mutex
	failedLoads []string
	told        int // how many of them Sound has told
}

// View is how the page is looked at.
func (p *Page) View() View { return p.view }

// Visit loads a URL and returns the HTTP status of the page that came of it, redirects followed.
func (p *Page) Visit(url string) int {
	p.t.Helper()
	response := Read(p, chromedp.NavigateResponse(url))
	return int(response.Status)
}

// Click clicks the first element that a CSS selector finds, once it is visible.
func (p *Page) Click(selector string) {
	p.t.Helper()
	p.click(selector, func(ctx context.Context, click chromedp.Action[chromedp.Void]) error {
		return chromedp.Do(ctx, click)
	})
}

// Submit clicks like Click and waits for the page that follows. It returns that page's HTTP status.
func (p *Page) Submit(selector string) int {
	p.t.Helper()
	status := 0
	p.click(selector, func(ctx context.Context, click chromedp.Action[chromedp.Void]) error {
		response, err := chromedp.RunResponse(ctx, click)
		if err == nil {
			status = int(response.Status)
		}
		return err
	})
	return status
}

// click runs a click, again where a live page put another element in place before the click came.
func (p *Page) click(selector string, run func(context.Context, chromedp.Action[chromedp.Void]) error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	for {
		p.See(selector)
		p.settle()
		err := run(ctx, chromedp.Click(chromedp.CSS(selector)))
		var replaced *cdproto.Error
		if errors.As(err, &replaced) && strings.Contains(replaced.Message, "Could not find node") {
			continue
		}
		if err != nil {
			p.t.Fatalf("click %s: %v", selector, err)
		}
		return
	}
}

// Fill replaces what stands in a field by typing.
func (p *Page) Fill(selector, text string) {
	p.t.Helper()
	p.See(selector)
	p.Do(
		chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.querySelector(%q).value = ''", selector)),
		chromedp.SendKeys(chromedp.CSS(selector), text),
	)
}

// Text returns the visible text of the first element that a selector finds, once it is visible.
func (p *Page) Text(selector string) string {
	p.t.Helper()
	return Read(p, chromedp.Text(chromedp.CSS(selector)))
}

// See waits until an element is visible.
func (p *Page) See(selector string) {
	p.t.Helper()
	p.Do(chromedp.WaitVisible(chromedp.CSS(selector)))
}

// SeeText waits until an element's visible text contains text. (It asks again and again: a page without scripts has no
// timers, which chromedp.Poll needs.)
func (p *Page) SeeText(selector, text string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	look := chromedp.Evaluate[string](fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	var got string
	for {
		now, err := chromedp.Run(ctx, look)
		if err == nil { // else it is between two pages
			got = now
		}
		if strings.Contains(got, text) {
			return
		}
		select {
		case <-ctx.Done():
			p.t.Fatalf("text of %s = %q, want %q in it", selector, got, text)
		case <-again.C:
		}
	}
}

// Path returns the path and query of the page now shown.
func (p *Page) Path() string {
	p.t.Helper()
	return Read(p, chromedp.Evaluate[string]("location.pathname + location.search"))
}

// Overflow returns by how many CSS pixels the page is wider than the screen: 0 on a page that holds.
func (p *Page) Overflow() int {
	p.t.Helper()
	return Read(p, chromedp.Evaluate[int]("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
}

// settle waits until the page takes an answer, where it has a question that is not answered at once.
func (p *Page) settle() {
	p.t.Helper()
	if !p.view.NoScript {
		p.See("html[data-settled], html:not(:has([data-settle]))")
	}
}

// Press types keys as they are on the keyboard, whatever has the focus: kb.Tab, kb.Enter, letters.
func (p *Page) Press(keys string, modifiers ...chromedp.Modifier) {
	p.t.Helper()
	if keys == kb.Enter {
		p.settle()
	}
	p.Do(chromedp.KeyEvent(keys, chromedp.KeyModifiers(modifiers...)))
}

// Show brings the page's window to sight or, false, out of it, as when it is minimised. A page cannot tell that from
// another tab in front of it.
func (p *Page) Show(inSight bool) {
	p.t.Helper()
	state := browser.WindowStateMinimized
	if inSight {
		state = browser.WindowStateNormal
	}
	p.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		window, err := cdp.Call(ctx, target, browser.GetWindowForTarget, browser.GetWindowForTargetParams{})
		if err != nil {
			return err
		}
		_, err = cdp.Call(ctx, target, browser.SetWindowBounds,
			browser.SetWindowBoundsParams{WindowID: window.WindowID, Bounds: &browser.Bounds{WindowState: state}})
		return err
	}))
}

// Sound fails the test for what no page may have: a broken accessibility rule, a scroll sideways, a part that did not
// load.
func (p *Page) Sound() {
	p.t.Helper()
	where := p.Path()
	for _, v := range p.Violations() {
		p.t.Errorf("%s: axe: %s", where, v)
	}
	if by := p.Overflow(); by != 0 {
		p.t.Errorf("%s is %d pixels wider than the screen", where, by)
	}
	failed := p.FailedLoads()
	for _, load := range failed[p.told:] {
		p.t.Errorf("%s: did not load: %s", where, load)
	}
	p.told = len(failed)
}

// Forgive takes what has failed to load so far as what the test meant, such as a form that is refused.
func (p *Page) Forgive() { p.told = len(p.FailedLoads()) }

// FailedLoads returns what failed to load since the page was opened, or was answered with an error: styles, scripts,
// fetches, streams. Not the pages themselves, whose status Visit and Submit return.
func (p *Page) FailedLoads() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.failedLoads)
}

// Do runs chromedp actions that return nothing.
func (p *Page) Do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatalf("drive the page: %v", err)
	}
}

// Read runs a chromedp action and returns its value. (A method cannot have a type parameter.)
func Read[T any](p *Page, action chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		p.t.Fatalf("read the page: %v", err)
	}
	return value
}

// Screenshot writes the whole page to .cache/screenshots/<test>-<name>.png and returns that path.
func (p *Page) Screenshot(name string) string {
	p.t.Helper()
	path, err := p.picture(name)
	if err != nil {
		p.t.Fatalf("take a screenshot: %v", err)
	}
	return path
}

func (p *Page) picture(name string) (string, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		return "", err
	}
	dir := filepath.Join(Root(p.t), ".cache", "screenshots")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, strings.ReplaceAll(p.t.Name(), "/", "-")+"-"+name+".png")
	return path, os.WriteFile(path, png, 0o600)
}

// keepFailure leaves a picture of what a failed test last saw.
func (p *Page) keepFailure() {
	if !p.t.Failed() {
		return
	}
	if path, err := p.picture("failed"); err == nil {
		p.t.Logf("the page as it was: %s", path)
	}
}

// watchConsole fails the test when it ends, if the page complained meanwhile.
func (p *Page) watchConsole() {
	ctx, stop := context.WithCancel(p.ctx)
	messages := chromedp.Console(ctx)
	var complaints []string
	var reading sync.WaitGroup
	reading.Go(func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			if complains(message) {
				complaints = append(complaints, message.String()+" ("+message.URL+")")
			}
		}
	})
	p.t.Cleanup(func() {
		stop()
		reading.Wait()
		for _, complaint := range complaints {
			p.t.Errorf("the page complained: %s", complaint)
		}
	})
}

// watchLoads notes what fails to load.
func (p *Page) watchLoads() {
	urls := map[network.RequestID]string{}
	note := func(url, why string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.failedLoads = append(p.failedLoads, url+": "+why)
	}
	err := chromedp.Listen(p.ctx, func(event any) {
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			urls[e.RequestID] = e.Request.URL
		case *network.EventResponseReceived:
			if e.Type != network.ResourceTypeDocument && e.Response.Status >= http.StatusBadRequest {
				note(e.Response.URL, strconv.Itoa(int(e.Response.Status)))
			}
		case *network.EventLoadingFailed:
			if !e.Canceled { // as a stream is when its page goes
				note(urls[e.RequestID], e.ErrorText)
			}
		}
	})
	if err != nil {
		p.t.Fatalf("watch what a page loads: %v", err)
	}
}

func complains(m chromedp.ConsoleMessage) bool {
	if m.IsException() {
		return true
	}
	return m.Type == chromedp.ConsoleError && m.Source != "network"
}
