package egress_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
)

// packers write what a decoder reads.
var packers = map[string]func(io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"x-gzip":  func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
	"zstd": func(w io.Writer) io.WriteCloser {
		z, _ := zstd.NewWriter(w) // fails for its options alone
		return z
	},
	"DEFLATE": func(w io.Writer) io.WriteCloser { // bare
		z, _ := flate.NewWriter(w, flate.BestCompression) // fails for its level alone
		return z
	},
}

func pack(t testing.TB, encoding string, plain []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := packers[encoding](&packed)
	_, err := w.Write(plain)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// startPacked serves bodies as they are, under the encoding that the query names.
func startPacked(t testing.TB, limits egress.Limits, bodies map[string][]byte) (*egress.Client, string) {
	t.Helper()
	return startVendor(t, limits, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header["Accept-Encoding"]; !cmp.Equal(got, []string{"identity"}) {
			t.Errorf("Accept-Encoding = %q, want identity", got)
		}
		for _, e := range r.URL.Query()["e"] {
			w.Header().Add("Content-Encoding", e)
		}
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/missing":
			w.WriteHeader(http.StatusNotFound)
		case "/part":
			w.WriteHeader(http.StatusPartialContent)
		}
		_, _ = w.Write(bodies[r.URL.Path])
	})
}

func TestFieldD07BodyThatComesCompressedIsDecompressedOnce(t *testing.T) {
	t.Parallel()
	plain := []byte(`{"hello":"` + strings.Repeat("world ", 10000) + canary + `"}`)
	want := strings.ReplaceAll(string(plain), canary, "[redacted]")
	for encoding := range packers {
		packed := pack(t, encoding, plain)
		c, base := startPacked(t, egress.Limits{}, map[string][]byte{"/": packed, "/missing": packed})
		for _, path := range []string{"/", "/missing"} {
			for _, accept := range []http.Header{nil, {"Accept-Encoding": {"br", "gzip"}}, {"accept-encoding": {"gzip"}}} {
				for _, in := range [][]egress.Injection{nil, {bearer(t, canary)}} {
					resp, err := c.Do(t.Context(), egress.Request{URL: base + path + "?e=" + encoding, Hosts: hostsOf(t, base), Header: accept, Inject: in})
					if err != nil {
						t.Errorf("%s, %v: %v", encoding, accept, err)
						continue
					}
					expected := string(plain)
					if in != nil {
						expected = want
					}
					if string(resp.Body) != expected || resp.Header.Get("Content-Encoding") != "" || resp.Redacted != (in != nil) {
						t.Errorf("%s: %d bytes, %v, redacted %t", encoding, len(resp.Body), resp.Header, resp.Redacted)
					}
					if length := resp.Header.Get("Content-Length"); length != "" && length != fmt.Sprint(len(resp.Body)) {
						t.Errorf("%s: Content-Length = %s of %d bytes", encoding, length, len(resp.Body))
					}
				}
			}
		}
	}
}

func TestFieldD07BrokenEncodingIsACleanError(t *testing.T) {
	t.Parallel()
	plain := []byte(strings.Repeat(canary, 1000))
	for encoding := range packers {
		packed := pack(t, encoding, plain)
		c, base := startPacked(t, egress.Limits{}, map[string][]byte{
			"/plain": []byte("\xff\xff\xff" + string(plain)), "/cut": packed[:len(packed)-1], "/head": packed[:1], "/empty": nil,
		})
		for _, path := range []string{"/plain", "/cut", "/head"} {
			if encoding == "DEFLATE" && path == "/head" {
				continue // one byte of it is not told from zlib's
			}
			_, err := get(t, c, base, path+"?e="+encoding)
			assertRefused(t, encoding+path, err, reason.UpstreamUnavailable)
			if got := reason.Of(err).Details["code"]; got != "encoding" || !errors.Is(err, egress.ErrSent) {
				t.Errorf("%s%s: code = %v in %v, want encoding, and ErrSent", encoding, path, got, err)
			}
			assertNoCanary(t, err)
		}
		if resp, err := get(t, c, base, "/empty?e="+encoding); err != nil || len(resp.Body) != 0 {
			t.Errorf("%s of nothing = %+v, %v, want nothing", encoding, resp, err)
		}
	}
}

func TestFieldD07BombIsCutAtTheLimitAndCostsNoMemory(t *testing.T) {
	const limit = 1 << 20
	for encoding := range packers {
		bomb := pack(t, encoding, make([]byte, 12<<20))
		c, base := startPacked(t, egress.Limits{ResponseBody: limit}, map[string][]byte{"/": bomb})
		if len(bomb) > limit {
			t.Fatalf("the bomb of %s has %d bytes", encoding, len(bomb))
		}
		s, err := c.Stream(t.Context(), egress.Request{URL: base + "/?e=" + encoding, Hosts: hostsOf(t, base), Inject: []egress.Injection{bearer(t, canary)}})
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n, err := io.Copy(io.Discard, s)
		runtime.ReadMemStats(&after)
		assertRefused(t, encoding, err, reason.TooLarge)
		if n > limit {
			t.Errorf("%s: %d bytes were read, want %d at most", encoding, n, limit)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 11<<20 { // windows, and the server's side of it
			t.Errorf("%s: reading allocated %d bytes", encoding, grown)
		}
		_ = s.Close()
	}
}

func TestEncodedBodyThatNeverYieldsAnythingIsCut(t *testing.T) {
	t.Parallel()
	// Empty members: each is whole, and there is no text in any of them.
	c, base := startPacked(t, egress.Limits{ResponseBody: 10000}, map[string][]byte{"/": bytes.Repeat(pack(t, "gzip", nil), 1000)})
	_, err := get(t, c, base, "/?e=gzip")
	assertRefused(t, "empty members", err, reason.TooLarge)
}

func TestEncodingThatCannotBeReadIsLeftOrRefused(t *testing.T) {
	t.Parallel()
	packed := pack(t, "gzip", []byte("hello"))
	c, base := startPacked(t, egress.Limits{}, map[string][]byte{"/": packed, "/part": packed})
	for _, query := range []string{"?e=compress", "?e=gzip,gzip", "?e=gzip&e=br", "?e=x", "part?e=gzip"} {
		resp, err := get(t, c, base, "/"+query)
		if err != nil || !bytes.Equal(resp.Body, packed) || resp.Header.Get("Content-Encoding") == "" {
			t.Errorf("%s without credential = %+v, %v, want it as it came", query, resp, err)
		}
		_, err = get(t, c, base, "/"+query, bearer(t, canary))
		assertRefused(t, query, err, reason.UpstreamUnavailable)
		if got := reason.Of(err).Details["code"]; got != "encoding" || !errors.Is(err, egress.ErrSent) {
			t.Errorf("%s: %v, want code encoding and ErrSent", query, err)
		}
	}
	for _, query := range []string{"?e=identity", "?e=identity,gzip", "?e="} {
		if _, err := get(t, c, base, "/"+query, bearer(t, canary)); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}

func TestEncodedHeadAndNotModifiedHaveNoBody(t *testing.T) {
	t.Parallel()
	c, base := startVendor(t, egress.Limits{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		if r.Method == http.MethodHead {
			w.Header().Set("Content-Length", "1000")
			return
		}
		w.WriteHeader(http.StatusNotModified)
	})
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		resp, err := c.Do(t.Context(), egress.Request{Method: method, URL: base, Hosts: hostsOf(t, base), Inject: []egress.Injection{bearer(t, canary)}})
		if err != nil || len(resp.Body) != 0 || resp.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s = %+v, %v, want headers as they came", method, resp, err)
		}
	}
}
