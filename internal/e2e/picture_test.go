package e2e_test

import (
	"bytes"
	"flag"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/getgraft/graft/internal/e2e"
)

var updatePicture = flag.Bool("update-picture", false, "take the README's picture of the console anew")

// The README shows an agent's page just after its first call. It is taken anew with
//
//	go test ./internal/e2e -run TestReadmePicture -update-picture
func TestReadmePicture(t *testing.T) {
	t.Parallel()
	path := filepath.Join(e2e.Root(t), "docs", "images", "console.png")
	if *updatePicture {
		if err := os.WriteFile(path, takePicture(t), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; -update-picture takes it", err)
	}
	picture, err := png.DecodeConfig(bytes.NewReader(b))
	if err != nil || picture.Width != 1280 || picture.Height < 600 || len(b) > 250_000 {
		t.Errorf("%s: %d by %d pixels, %d bytes, %v; want a PNG 1280 wide of at most 250 kB", path, picture.Width, picture.Height, len(b), err)
	}
}

// takePicture shows a token that belongs to nobody, and a name for the host.
func takePicture(t *testing.T) []byte {
	t.Helper()
	view := e2e.Desk
	view.Height = 655 // to the end of the connect block
	v, kit := firstVisitor(t, e2e.StartBrowser(t).Page(t, view))
	v.welcome(kit)
	v.arrive("main .btn.primary", "New agent")
	token := v.makeAgent("hermes-prod")
	connect(t, v.url, token).call()
	v.SeeText("#first-call", "Connected")
	v.SeeText("#agent-sessions", "Hermes")
	v.Click("[data-dismiss]")
	v.eval(`(() => {
		const all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		while (all.nextNode()) {
			const text = all.currentNode;
			text.data = text.data.replace(` + quote(v.url) + `, "https://graft.example.org").replace(` + quote(token) + `, "grft_this-token-is-in-a-picture-and-works-nowhere");
		}
		return "";
	})()`)
	return e2e.Read(v.Page, chromedp.CaptureScreenshot())
}
