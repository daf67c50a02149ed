package egress

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLimitsHaveDefaults(t *testing.T) {
	t.Parallel()
	got, err := Limits{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	want := Limits{
		Call: 30 * time.Second, RequestBody: 10 << 20, RequestHeaderBytes: 64 << 10, RequestHeaders: 256,
		ResponseBody: 10 << 20, ResponseHeaderBytes: 64 << 10, ResponseHeaders: 256,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}
