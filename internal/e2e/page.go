package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
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
}

// Visit loads a URL and returns the HTTP status of the page that came of it, redirects followed.
func (p *Page) Visit(url string) int {
	p.t.Helper()
	response := Read(p, chromedp.NavigateResponse(url))
	return int(response.Status)
}

// Click clicks the first element that a CSS selector finds, once it is visible.
func (p *Page) Click(selector string) {
	p.t.Helper()
	p.Do(chromedp.Click(chromedp.CSS(selector)))
}

// Submit clicks like Click and waits for the page that follows.
func (p *Page) Submit(selector string) int {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	response, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector)))
	if err != nil {
		p.t.Fatalf("submit %s: %v", selector, err)
	}
	return int(response.Status)
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
	for {
		got, err := chromedp.Run(ctx, look)
		switch {
		case strings.Contains(got, text):
			return
		case err != nil:
			p.t.Fatalf("wait for %q in %s: %v", text, selector, err)
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

func complains(m chromedp.ConsoleMessage) bool {
	if m.IsException() {
		return true
	}
	return m.Type == chromedp.ConsoleError && m.Source != "network"
}
