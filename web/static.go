package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed static
var files embed.FS

const prefix = "/static/"

var types = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// asset is one embedded file as it is served.
type asset struct {
	path   string // /static/graft.<hash>.css
	hash   string
	kind   string // Content-Type
	plain  []byte
	zipped []byte // gzip of plain
}

var assets = sync.OnceValue(loadAssets)

// Asset returns the path at which the embedded file of that name is served,
// with a hash of its content: a new file is a new path. It panics on a name
// that is not embedded, since only our own templates call it.
func Asset(name string) string {
	a, ok := assets()[name]
	if !ok {
		panic(fmt.Sprintf("web: no asset %q", name))
	}
	return a.path
}

// Static serves the embedded files under /static/. A path that carries a
// file's present hash may be kept for ever. One that carries another hash comes
// from a page of another version, as in a rolling upgrade: it gets the present
// file, to be kept by nobody. Any other path is not found.
func Static() http.Handler {
	return http.HandlerFunc(serveStatic)
}

func serveStatic(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		return
	}
	a, ok := findAsset(r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache")
	if r.URL.Path == a.path {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	body, tag := a.plain, a.hash
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body, tag = a.zipped, a.hash+"-gzip"
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// findAsset returns the file whose name and extension the path has, whatever
// the hash between them.
func findAsset(p string) (asset, bool) {
	p, ok := strings.CutPrefix(p, prefix)
	if !ok {
		return asset{}, false
	}
	parts := strings.Split(p, ".")
	if len(parts) != 3 || !isHash(parts[1]) {
		return asset{}, false
	}
	a, ok := assets()[parts[0]+"."+parts[2]]
	return a, ok
}

func isHash(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == hashSize
}

const hashSize = 6 // bytes of SHA-256 in a path

func loadAssets() map[string]asset {
	all := map[string]asset{}
	entries, err := fs.ReadDir(files, "static")
	if err != nil {
		panic(err) // the folder is embedded
	}
	for _, e := range entries {
		body, err := files.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err)
		}
		all[e.Name()] = newAsset(e.Name(), body)
	}
	return all
}

func newAsset(name string, body []byte) asset {
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:hashSize])
	ext := path.Ext(name)
	return asset{
		path:   prefix + strings.TrimSuffix(name, ext) + "." + hash + ext,
		hash:   hash,
		kind:   types[ext],
		plain:  body,
		zipped: zip(body),
	}
}

func zip(body []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is a valid one
	_, _ = z.Write(body)                                  // a Buffer takes everything
	_ = z.Close()
	return b.Bytes()
}
