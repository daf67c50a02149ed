package main_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/getgraft/graft/internal/store/storetest"
)

// Of two who make the next key one does, and both are told which.
func TestRotateTokensMakesOneNextKey(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	env := h.own(storetest.PrivateURL(t))
	type next struct {
		Kid  string
		Made bool
	}
	var all []next
	for range 2 {
		var n next
		if err := json.Unmarshal([]byte(h.ok(append(append([]string{}, env...), "key", "rotate-tokens", "--json")...)), &n); err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	if !strings.HasPrefix(all[0].Kid, "key_") || all[1].Kid != all[0].Kid || !all[0].Made || all[1].Made {
		t.Errorf("key rotate-tokens, twice = %+v, want one key, made once", all)
	}
	if out := h.ok(append(append([]string{}, env...), "key", "rotate-tokens")...); !strings.Contains(out, all[0].Kid+" was made before") {
		t.Errorf("key rotate-tokens = %q", out)
	}
}
