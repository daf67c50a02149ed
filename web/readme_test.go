package web_test

import (
	"os"
	"strings"
	"testing"

	"github.com/getgraft/graft/web"
)

// The README shows the blocks that the console shows, for the address of a first start.
func TestReadmeShowsTheConnectBlocks(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range web.ConnectBlocks("http://localhost:8080/mcp", "graft") {
		var text strings.Builder
		for _, token := range block.Code.Tokens {
			text.WriteString(token.Text)
		}
		if !strings.Contains(string(readme), strings.TrimSpace(text.String())) {
			t.Errorf("README.md does not show the block of %s:\n%s", block.Client, text.String())
		}
	}
}
