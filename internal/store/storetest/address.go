package storetest

import (
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
)

// drawn counts the ports that Address looked at in this process.
var drawn atomic.Int64

// Address is a loopback address, host:port, to listen on later, or again after a pause. Its port is below those that the
// kernel gives to whoever connects or asks for any port (32768 and up), so that nobody else holds it by then; the process
// says where to begin, so that packages tested side by side do not meet.
func Address(t testing.TB) string {
	t.Helper()
	const first, ports, perProcess = 20_000, 12_000, 60
	for range ports {
		port := first + (int64(os.Getpid())*perProcess+drawn.Add(1))%ports
		address := net.JoinHostPort("127.0.0.1", strconv.FormatInt(port, 10))
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err != nil {
			continue
		}
		_ = l.Close()
		return address
	}
	t.Fatalf("no free port from %d on", first)
	return ""
}
