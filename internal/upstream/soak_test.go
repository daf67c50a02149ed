//go:build soak

package upstream_test

import "testing"

func TestAMillionCallsOfTwentyAgentsStayApart(t *testing.T) {
	t.Parallel()
	interleave(t, 1_000_000)
}
