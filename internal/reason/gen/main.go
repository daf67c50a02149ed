// Command gen renders the reasons table into the documentation. It is run by go generate, and the test beside
// it fails when the page is not what the table says.
package main

import (
	"flag"
	"log"
	"os"

	"github.com/getgraft/graft/internal/reason"
)

func main() {
	out := flag.String("o", "docs/reasons.md", "the page to write")
	flag.Parse()
	if err := os.WriteFile(*out, []byte(reason.Page()), 0o644); err != nil {
		log.Fatal(err)
	}
}
