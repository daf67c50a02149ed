package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Browser is one running Chromium. Starting it takes about a second, so a package starts one in a top-level test and
// gives every subtest a page of its own.
type Browser struct {
	ctx context.Context
}

// View is how a page is looked at.
type View struct {
	Width, Height int64  // CSS pixels
	Dark          bool   // prefers-color-scheme
	NoScript      bool   // the page's scripts do not run; ours still do
	Zone          string // IANA time zone of the reader; "" is the machine's
}

// Phone and Desk are the two widths every page must hold at.
var (
	Phone = View{Width: 360, Height: 800}
	Desk  = View{Width: 1280, Height: 900}
)

// String names a view in a test's name: 360-dark-noscript.
func (v View) String() string {
	name := fmt.Sprintf("%d-light", v.Width)
	if v.Dark {
		name = fmt.Sprintf("%d-dark", v.Width)
	}
	if v.NoScript {
		name += "-noscript"
	}
	return name
}

// Views returns the four looks every page is tested in: both widths, light and dark.
func Views() []View {
	views := []View{Phone, Phone, Desk, Desk}
	views[1].Dark, views[3].Dark = true, true
	return views
}

// StartBrowser starts a headless Chromium on an empty profile; it ends when t and its subtests have.
func StartBrowser(t testing.TB) *Browser {
	t.Helper()
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), browserOptions(Chromium(t))...)
	ctx, stop := chromedp.NewContext(alloc)
	t.Cleanup(stopAlloc)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return &Browser{ctx: ctx}
}

// browserOptions starts a browser that talks to nobody but the test; the profile is a fresh temporary folder.
func browserOptions(path string) []chromedp.ExecAllocatorOption {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.Flag("headless", "new"),
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's sandbox refuses root
	}
	return options
}

// Page opens a tab with its own cookies; it closes with t. See Page for what fails the test.
func (b *Browser) Page(t testing.TB, view View) *Page {
	t.Helper()
	ctx, stop := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	p := &Page{t: t, ctx: ctx, view: view}
	t.Cleanup(stop)
	if err := chromedp.Do(ctx, view.set()); err != nil {
		t.Fatalf("open a page: %v", err)
	}
	p.watchConsole()
	p.watchLoads()
	t.Cleanup(p.keepFailure)
	return p
}

// Each runs test once per view, in parallel, each with a page of its own.
func (b *Browser) Each(t *testing.T, test func(t *testing.T, p *Page)) {
	t.Helper()
	for _, view := range Views() {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			test(t, b.Page(t, view))
		})
	}
}

// set makes the tab look like the view.
func (v View) set() chromedp.Action[chromedp.Void] {
	scheme := "light"
	if v.Dark {
		scheme = "dark"
	}
	return chromedp.Steps(
		chromedp.EmulateViewport(v.Width, v.Height),
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{
					{Name: "prefers-color-scheme", Value: scheme},
					{Name: "prefers-reduced-motion", Value: "reduce"}, // axe measures colours in mid-transition otherwise
				},
			})
			return err
		}),
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: v.Zone})
			return err
		}),
		scripts(!v.NoScript),
	)
}

// scripts allows or stops the scripts of the page.
func scripts(run bool) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: !run})
		return err
	})
}
