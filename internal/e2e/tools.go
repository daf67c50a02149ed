package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Node returns the path of a Node.js new enough for the official clients (22.19).
func Node(t testing.TB) string {
	t.Helper()
	if own := filepath.Join(modules(t), ".bin", "node"); exists(own) {
		return own
	}
	onPath, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("find Node.js: %v; `make test` installs it", err)
	}
	return onPath
}

// Script returns the path of an npm command to be run by Node: mcp-inspector, mcp-remote.
func Script(t testing.TB, name string) string {
	t.Helper()
	return mustExist(t, filepath.Join(modules(t), ".bin", name))
}

// Module returns the path of a file inside an npm package, such as axe-core/axe.min.js.
func Module(t testing.TB, name string) string {
	t.Helper()
	return mustExist(t, filepath.Join(modules(t), filepath.FromSlash(name)))
}

// Vendor returns the path of a file inside the npm package of a vendor's own client, which `make clients` installs.
func Vendor(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(Root(t), "internal", "e2e", "vendors", "node_modules", filepath.FromSlash(name))
	if !exists(path) {
		t.Fatalf("%s is missing; `make clients` installs it", path)
	}
	return path
}

// terminal returns the path of util-linux's script; other systems have one of the same name with other options.
func terminal(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("script")
	if err != nil {
		t.Fatalf("find script: %v; install util-linux (on Debian the package bsdutils)", err)
	}
	if version, err := exec.CommandContext(t.Context(), path, "--version").CombinedOutput(); err != nil || !strings.Contains(string(version), "util-linux") {
		t.Fatalf("%s is not that of util-linux, which must be installed: %v: %s", path, err, version)
	}
	return path
}

// Client returns the path of one of our own small client programs in clients/, to be run by Node.
func Client(t testing.TB, name string) string {
	t.Helper()
	return mustExist(t, filepath.Join(Root(t), "internal", "e2e", "clients", name))
}

// Server returns the path of one of our own small server programs in servers/, to be run by Node.
func Server(t testing.TB, name string) string {
	t.Helper()
	return mustExist(t, filepath.Join(Root(t), "internal", "e2e", "servers", name))
}

// Chromium returns the path of a Chromium or Chrome: from PATH, else the one `make test` unpacked.
func Chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{
		"chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium",
	} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return mustExist(t, filepath.Join(Root(t), ".cache", "chromium", "chromium"))
}

// Root returns the top folder of the checkout: go test runs every test in its own package's folder, somewhere below it.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatalf("find the checkout: %v", err)
	}
	for !exists(filepath.Join(dir, "go.mod")) {
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("find the checkout: no go.mod above the working folder")
		}
		dir = parent
	}
	return dir
}

func modules(t testing.TB) string {
	t.Helper()
	return filepath.Join(Root(t), "internal", "e2e", "node_modules")
}

func mustExist(t testing.TB, path string) string {
	t.Helper()
	if !exists(path) {
		t.Fatalf("%s is missing; `make test` installs it (internal/e2e/setup)", path)
	}
	return path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
