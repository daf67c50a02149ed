package storetest_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/getgraft/graft/internal/store/storetest"
)

func TestAddressesAreFreeDistinctAndNotTheKernels(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100 {
		address := storetest.Address(t)
		if seen[address] {
			t.Fatalf("%s was given twice", address)
		}
		seen[address] = true
		_, port, err := net.SplitHostPort(address)
		if n, _ := strconv.Atoi(port); err != nil || n < 1024 || n >= 32768 {
			t.Errorf("%s is a port that the kernel gives away", address)
		}
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
	}
}
