package main_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// partyEnv makes this test binary one of the parties of BenchmarkCost, so that each is a process whose CPU time is its own.
const partyEnv = "GRAFT_COST_PARTY"

// party serves as the environment says, until stdin ends, and reports whether it was asked to.
func party() bool {
	kind, to, _ := strings.Cut(os.Getenv(partyEnv), " ")
	var h http.Handler
	switch kind {
	case "":
		return false
	case "upstream":
		h = &echoServer{}
	case "floor":
		h = floor(to)
	case "floor-parse":
		h = parsing(floor(to))
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with whoever began us
		_ = srv.Close()
	}()
	_ = srv.Serve(l) // until closed
	return true
}

// A process is a party that runs.
type process struct {
	url string
	pid int
}

func startParty(b *testing.B, kind string) process {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(b.Context()), self)
	cmd.Env = append(os.Environ(), partyEnv+"="+kind)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait() // it was told to end
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatalf("%s did not start: %v", kind, err)
	}
	return process{url: "http://" + strings.TrimSpace(line) + "/mcp", pid: cmd.Process.Pid}
}

// floor passes everything on and looks at nothing: the least that a gateway in Go can cost.
func floor(to string) http.Handler {
	target, err := url.Parse(to)
	if err != nil {
		panic(err)
	}
	target.Path = ""
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
	}
}

// floorToken is the one bearer that parsing lets through.
const floorToken = "floor"

// parsing looks the bearer's hash up and reads the envelope: the least that a gateway of MCP with a token for each agent
// can cost.
func parsing(next http.Handler) http.Handler {
	known := map[[sha256.Size]byte]bool{sha256.Sum256([]byte("Bearer " + floorToken)): true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !known[sha256.Sum256([]byte(r.Header.Get("Authorization")))] {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, err := io.ReadAll(r.Body)
		var m struct {
			Method string
			ID     json.RawMessage
			Params struct{ Name string }
		}
		if err != nil || r.Method == http.MethodPost && (json.Unmarshal(body, &m) != nil || m.Method == "") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		next.ServeHTTP(w, r)
	})
}

// An echoServer is the least of an MCP server that keeps sessions.
type echoServer struct{ sessions sync.Map }

const echoTools = `{"tools":[` +
	`{"name":"read","description":"Echoes text.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]},"annotations":{"readOnlyHint":true}},` +
	`{"name":"write","description":"Echoes text.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]},"annotations":{"readOnlyHint":false}}]}`

func (s *echoServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			ProtocolVersion string
			Arguments       struct{ Text string }
		}
	}
	if json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if m.Method == "initialize" {
		id := rand.Text()
		s.sessions.Store(id, true)
		w.Header().Set("Mcp-Session-Id", id)
	} else if _, known := s.sessions.Load(r.Header.Get("Mcp-Session-Id")); !known {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := `{}`
	switch m.Method {
	case "initialize":
		result = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}`, m.Params.ProtocolVersion)
	case "tools/list":
		result = echoTools
	case "tools/call":
		text, _ := json.Marshal(m.Params.Arguments.Text) // a string
		result = fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, text)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}
