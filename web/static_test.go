package web_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getgraft/graft/web"
)

func TestStylesheetIsAtMost10KiBCompressed(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, readFile(t, "static/graft.css")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 10<<10 {
		t.Errorf("graft.css is %d bytes compressed, want at most %d", b.Len(), 10<<10)
	}
}

func TestAssetsAreKeptForEver(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]string{
		"graft.css": "text/css; charset=utf-8",
		"graft.js":  "text/javascript; charset=utf-8",
		"mark.svg":  "image/svg+xml",
	} {
		got := request(t, http.MethodGet, web.Asset(name), nil)
		if got.Code != http.StatusOK || got.Header().Get("Content-Type") != kind {
			t.Errorf("GET %s = %d %s, want 200 %s", web.Asset(name), got.Code, got.Header().Get("Content-Type"), kind)
		}
		if cc := got.Header().Get("Cache-Control"); cc != "public, max-age=31536000, immutable" {
			t.Errorf("GET %s: Cache-Control = %q, want immutable", web.Asset(name), cc)
		}
		if body := readAll(t, got.Body); body != readFile(t, "static/"+name) {
			t.Errorf("GET %s answers %d bytes that are not the file's", web.Asset(name), len(body))
		}
	}
}

func TestAssetsAreCompressedForThoseWhoTakeIt(t *testing.T) {
	t.Parallel()
	got := request(t, http.MethodGet, web.Asset("graft.css"), http.Header{"Accept-Encoding": {"br, gzip"}})
	if e := got.Header().Get("Content-Encoding"); e != "gzip" {
		t.Fatalf("Content-Encoding = %q, want gzip", e)
	}
	z, err := gzip.NewReader(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	if body := readAll(t, z); body != readFile(t, "static/graft.css") {
		t.Error("the compressed stylesheet is not the file")
	}
}

func TestAnUnchangedAssetIsNotSentAgain(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"", "gzip"} {
		first := request(t, http.MethodGet, web.Asset("graft.js"), http.Header{"Accept-Encoding": {encoding}})
		again := request(t, http.MethodGet, web.Asset("graft.js"), http.Header{"Accept-Encoding": {encoding}, "If-None-Match": {first.Header().Get("ETag")}})
		if again.Code != http.StatusNotModified {
			t.Errorf("GET with the ETag just answered (encoding %q) = %d, want 304", encoding, again.Code)
		}
	}
}

func TestAPageOfAnotherVersionStillGetsItsAssets(t *testing.T) {
	t.Parallel()
	got := request(t, http.MethodGet, "/static/graft.0123456789ab.css", nil)
	if got.Code != http.StatusOK || got.Header().Get("Cache-Control") != "no-cache" {
		t.Errorf("GET with another hash = %d, Cache-Control %q; want 200, no-cache", got.Code, got.Header().Get("Cache-Control"))
	}
}

func TestNothingElseIsServed(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/static/", "/static", "/static/graft.css", "/static/other.0123456789ab.css", "/static/graft.zz23456789ab.css", "/static/graft.0123.css", "/static/../static.go", "/other" + web.Asset("graft.css")} {
		if got := request(t, http.MethodGet, path, nil); got.Code != http.StatusNotFound {
			t.Errorf("GET %s = %d, want 404", path, got.Code)
		}
	}
	got := request(t, http.MethodPost, web.Asset("graft.css"), nil)
	if got.Code != http.StatusMethodNotAllowed || got.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST = %d, Allow %q; want 405, GET, HEAD", got.Code, got.Header().Get("Allow"))
	}
}

func TestAssetsHaveTheirContentInTheirName(t *testing.T) {
	t.Parallel()
	got := web.Asset("graft.css")
	if !strings.HasPrefix(got, "/static/graft.") || !strings.HasSuffix(got, ".css") || len(got) != len("/static/graft.0123456789ab.css") {
		t.Errorf("Asset(graft.css) = %q, want /static/graft.<12 hex digits>.css", got)
	}
}

func request(t *testing.T, method, path string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://graft.example.org/", nil)
	r.URL.Path = path
	for k, v := range header {
		r.Header[k] = v
	}
	w := httptest.NewRecorder()
	web.Static().ServeHTTP(w, r)
	return w
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
