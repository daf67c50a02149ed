package egress_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/getgraft/graft/internal/egress"
	"github.com/getgraft/graft/internal/reason"
)

// spellings lead, for some parser or resolver, where no request may go. PORT is a port that listens on loopback.
// Every one of them is refused without a look-up and without a dial, also when the host set holds it.
var spellings = []struct {
	url  string
	want reason.Word
}{
	// This machine.
	{"https://127.0.0.1:PORT/", reason.HostNotPublic},
	{"http://127.0.0.1:PORT/", reason.HostNotPublic},
	{"https://127.255.255.254:PORT/", reason.HostNotPublic},
	{"https://127.0.0.1.:PORT/", reason.HostNotPublic},
	{"https://localhost:PORT/", reason.HostNotPublic},
	{"http://LOCALHOST:PORT/", reason.HostNotPublic},
	{"https://localhost.:PORT/", reason.HostNotPublic},
	{"https://a.b.localhost:PORT/", reason.HostNotPublic},
	{"https://ⓛocalhost:PORT/", reason.HostNotPublic},
	{"https://127.1:PORT/", reason.HostNotPublic},
	{"https://127.1.:PORT/", reason.HostNotPublic},
	{"https://127.0.1:PORT/", reason.HostNotPublic},
	{"https://2130706433:PORT/", reason.HostNotPublic},
	{"https://017700000001:PORT/", reason.HostNotPublic},
	{"https://0177.0.0.1:PORT/", reason.HostNotPublic},
	{"https://0x7f000001:PORT/", reason.HostNotPublic},
	{"https://0X7F.1:PORT/", reason.HostNotPublic},
	{"https://0x7f.0x0.0x0.0x1:PORT/", reason.HostNotPublic},
	{"https://127.000.000.001:PORT/", reason.HostNotPublic},
	{"https://127.0.0.01:PORT/", reason.HostNotPublic},
	{"https://127.0.0.0x1:PORT/", reason.HostNotPublic},
	{"https://127.0.0.0x:PORT/", reason.HostNotPublic},
	{"https://127.0.0.256:PORT/", reason.HostNotPublic},
	{"https://127.0.0.1.5:PORT/", reason.HostNotPublic},
	{"https://127.0.0.1:PORT/", reason.HostNotPublic},
	{"https://①②⑦.⓪.⓪.①:PORT/", reason.HostNotPublic},
	{"https://127。0。0。1:PORT/", reason.HostNotPublic},
	{"https://0:PORT/", reason.HostNotPublic},
	{"https://0.0.0.0:PORT/", reason.HostNotPublic},
	{"https://[::1]:PORT/", reason.HostNotPublic},
	{"http://[::1]:PORT/", reason.HostNotPublic},
	{"https://[0:0:0:0:0:0:0:1]:PORT/", reason.HostNotPublic},
	{"https://[::]:PORT/", reason.HostNotPublic},
	{"https://[::ffff:127.0.0.1]:PORT/", reason.HostNotPublic},
	{"https://[::ffff:7f00:1]:PORT/", reason.HostNotPublic},
	{"https://[0:0:0:0:0:ffff:7f00:0001]:PORT/", reason.HostNotPublic},
	{"https://[::127.0.0.1]:PORT/", reason.HostNotPublic},
	{"https://[::ffff:0:127.0.0.1]:PORT/", reason.HostNotPublic},
	{"https://[::1%25lo]:PORT/", reason.HostNotPublic},
	{"https://[fe80::1%25eth0]:PORT/", reason.HostNotPublic},
	{"https://[::FFFF:127.0.0.1]:PORT/", reason.HostNotPublic},
	{"https://[::ffff:0x7f.0.0.1]:PORT/", reason.InputInvalid},
	{"https://[0000::1]:PORT/", reason.HostNotPublic},
	{"https://[64:ff9b::127.0.0.1]:PORT/", reason.HostNotPublic},
	{"https://[64:ff9b::7f00:1]:PORT/", reason.HostNotPublic},
	{"https://[64:ff9b:1::7f00:1]:PORT/", reason.HostNotPublic},
	{"https://[2002:7f00:1::]:PORT/", reason.HostNotPublic},
	{"https://[2002:7f00:0001:0:0:0:0:1]:PORT/", reason.HostNotPublic},
	{"https://[2001:0:7f00:1::]:PORT/", reason.HostNotPublic},
	{"https://[::1%251]:PORT/", reason.HostNotPublic},
	{"https://[::1%25]:PORT/", reason.InputInvalid},
	{"https://[::1%]:PORT/", reason.InputInvalid},
	{"https://127.0.0.1%25lo:PORT/", reason.HostNotPublic},
	{"https://127%2e0%2e0%2e1:PORT/", reason.InputInvalid},
	{"https://127.0.0.1%00.vendor.test:PORT/", reason.InputInvalid},
	{"https://127．0．0．1:PORT/", reason.HostNotPublic},
	{"https://127｡0｡0｡1:PORT/", reason.HostNotPublic},
	{"https://１２７.0.0.1:PORT/", reason.HostNotPublic},
	{"https://0x7f。1:PORT/", reason.HostNotPublic},
	{"https://localhost。:PORT/", reason.HostNotPublic},
	{"https://ｌｏｃａｌｈｏｓｔ:PORT/", reason.HostNotPublic},
	{"https://127.0.0.1..:PORT/", reason.InputInvalid},
	{"https://localhost..:PORT/", reason.InputInvalid},
	{"https://00000177.0.0.1:PORT/", reason.HostNotPublic},
	{"https://4294967297:PORT/", reason.HostNotPublic},
	{"https://0x100000001:PORT/", reason.HostNotPublic},
	{"https://127.0x1:PORT/", reason.HostNotPublic},
	{"https://127.65535:PORT/", reason.HostNotPublic},
	// Metadata of clouds.
	{"http://169.254.169.254/latest/meta-data/", reason.HostNotPublic},
	{"https://[::ffff:169.254.169.254]/", reason.HostNotPublic},
	{"https://[::ffff:a9fe:a9fe]/", reason.HostNotPublic},
	{"https://2852039166/", reason.HostNotPublic},
	{"https://0xA9FEA9FE/", reason.HostNotPublic},
	{"https://0xa9.0xfe.0xa9.0xfe/", reason.HostNotPublic},
	{"https://0251.0376.0251.0376/", reason.HostNotPublic},
	{"https://169.254.43518/", reason.HostNotPublic},
	{"https://100.100.100.200/", reason.HostNotPublic},
	{"https://192.0.0.192/", reason.HostNotPublic},
	{"https://168.63.129.16/", reason.HostNotPublic},
	{"https://[fd00:ec2::254]/", reason.HostNotPublic},
	{"https://metadata/", reason.HostNotPublic},
	{"https://metadata.google.internal/", reason.HostNotPublic},
	{"https://[64:ff9b::a9fe:a9fe]/", reason.HostNotPublic},
	{"https://[2002:a9fe:a9fe::]/", reason.HostNotPublic},
	{"https://169.254.169.254./", reason.HostNotPublic},
	{"https://169。254。169。254/", reason.HostNotPublic},
	{"https://METADATA.google.internal./", reason.HostNotPublic},
	{"https://instance-data/", reason.HostNotPublic},
	{"https://instance-data.ec2.internal/", reason.HostNotPublic},
	{"https://169.254.170.2/v2/credentials", reason.HostNotPublic},
	{"https://[fe80::a9fe:a9fe]/", reason.HostNotPublic},
	// Private networks.
	{"https://10.0.0.5/", reason.HostNotPublic},
	{"https://10.1/", reason.HostNotPublic},
	{"https://192.168.257/", reason.HostNotPublic},
	{"https://printer.local/", reason.HostNotPublic},
	{"https://router.home.arpa/", reason.HostNotPublic},
	{"https://intranet/", reason.HostNotPublic},
	{"https://172.16.0.1/", reason.HostNotPublic},
	{"https://192.168.0.1/", reason.HostNotPublic},
	{"https://100.64.0.1/", reason.HostNotPublic},
	{"https://198.18.0.1/", reason.HostNotPublic},
	{"https://224.0.0.1/", reason.HostNotPublic},
	{"https://255.255.255.255/", reason.HostNotPublic},
	{"https://[fc00::1]/", reason.HostNotPublic},
	{"https://[fdff:ffff::1]/", reason.HostNotPublic},
	{"https://[fec0::1]/", reason.HostNotPublic},
	{"https://[ff02::1]/", reason.HostNotPublic},
	{"https://[::ffff:10.0.0.5]/", reason.HostNotPublic},
	{"https://[::ffff:0a00:0005]/", reason.HostNotPublic},
	{"https://[64:ff9b::10.0.0.5]/", reason.HostNotPublic},
	{"https://167772165/", reason.HostNotPublic},
	{"https://kubernetes.default.svc.cluster.local/", reason.HostNotPublic},
	// Other schemes, and URLs that parsers disagree on.
	{"file:///etc/passwd", reason.InputInvalid},
	{"gopher://127.0.0.1:PORT/", reason.InputInvalid},
	{"ftp://127.0.0.1:PORT/", reason.InputInvalid},
	{"unix:///var/run/docker.sock", reason.InputInvalid},
	{"data:text/plain,x", reason.InputInvalid},
	{"//127.0.0.1:PORT/", reason.InputInvalid},
	{"127.0.0.1:PORT", reason.InputInvalid},
	{"https:127.0.0.1:PORT/", reason.InputInvalid},
	{"https:///127.0.0.1:PORT/", reason.InputInvalid},
	{"https://@127.0.0.1:PORT/", reason.InputInvalid},
	{"https://vendor.test@127.0.0.1:PORT/", reason.InputInvalid},
	{"https://vendor.test:443@127.0.0.1:PORT/", reason.InputInvalid},
	{"https://127.0.0.1:PORT\\@vendor.test/", reason.InputInvalid},
	{"https://%31%32%37.0.0.1:PORT/", reason.InputInvalid},
	{"https://[::1:PORT/", reason.InputInvalid},
	{"https://[127.0.0.1]:PORT/", reason.InputInvalid},
	{"https://127.0.0.1:PORT:80/", reason.InputInvalid},
	{"https://vendor.test&@127.0.0.1:PORT/", reason.InputInvalid},
	{"https://127.0.0.1:PORT#@vendor.test/", reason.HostNotPublic},
	{"https://127.0.0.1:PORT?@vendor.test/", reason.HostNotPublic},
	{"https:\\\\127.0.0.1:PORT/", reason.InputInvalid},
	{"https:/127.0.0.1:PORT/", reason.InputInvalid},
	{"https://\\127.0.0.1:PORT/", reason.InputInvalid},
	{" https://127.0.0.1:PORT/", reason.InputInvalid},
	{"HTTPS://127.0.0.1:PORT/", reason.HostNotPublic},
	{"hTTp://127.0.0.1:PORT/", reason.HostNotPublic},
	{"ws://127.0.0.1:PORT/", reason.InputInvalid},
	{"dict://127.0.0.1:PORT/", reason.InputInvalid},
	{"ldap://127.0.0.1:PORT/", reason.InputInvalid},
	{"jar:https://127.0.0.1:PORT/!/", reason.InputInvalid},
	{"javascript:alert(1)", reason.InputInvalid},
	{"https://127.0.0.1:+PORT/", reason.InputInvalid},
	{"https://127.0.0.1:-1/", reason.InputInvalid},
	{"https://127.0.0.1:0xPORT/", reason.InputInvalid},
	{"https://vendor.test:0/", reason.InputInvalid},
	{"https://vendor.test:65536/", reason.InputInvalid},
	{"https://vendor..test/", reason.InputInvalid},
	{"https://.vendor.test/", reason.InputInvalid},
	{"https://vendor.test\t/", reason.InputInvalid},
	{"https://vendor.test\r\nHost: x/", reason.InputInvalid},
	{"https://vendor.test\x00/", reason.InputInvalid},
	{"https://xn--a/", reason.InputInvalid},
	{"https://" + strings.Repeat("a", 64) + ".test/", reason.InputInvalid},
	{"", reason.InputInvalid},
	// Plain http to what may be public.
	{"http://vendor.test/", reason.InputInvalid},
	{"http://93.184.216.34/", reason.InputInvalid},
}

func TestFieldD02ForbiddenSpellingsAreRefusedWithoutADial(t *testing.T) {
	t.Parallel()
	hits, addr := countConnections(t, "127.0.0.1:0")
	port := fmt.Sprint(addr.(*net.TCPAddr).Port)
	hits6, _ := countConnections(t, "[::1]:"+port)
	var lookups atomic.Int32
	c := newClient(t, egress.Config{Resolver: serveDNS(t, map[string]zone{"vendor.test": func(int) []string {
		lookups.Add(1)
		return nil
	}})})
	var seen dials
	ctx := seen.watch(t.Context())
	for _, s := range spellings {
		target := strings.ReplaceAll(s.url, "PORT", port)
		// The set holds the very host where that can be said at all.
		hosts := hostsOf(t, "vendor.test", "http://vendor.test")
		if u, err := url.Parse(target); err == nil {
			if own, err := egress.ParseHosts(u.Scheme + "://" + u.Host); err == nil {
				hosts = own
			}
		}
		resp, err := c.Do(ctx, egress.Request{URL: target, Hosts: hosts})
		if resp != nil {
			t.Errorf("Do(%q) = %d", target, resp.Status)
		}
		assertRefused(t, fmt.Sprintf("Do(%q)", target), err, s.want)
	}
	if tried, _ := seen.get(); len(tried) > 0 || lookups.Load() > 0 {
		t.Errorf("%d spellings led to look-ups %d and dials %v, want none", len(spellings), lookups.Load(), tried)
	}
	if hits.Load() != 0 || hits6.Load() != 0 {
		t.Errorf("loopback was connected to %d and %d times, want 0", hits.Load(), hits6.Load())
	}
}

// specials are addresses out of every range that is not public.
var specials = []string{
	"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.0.0.53",
	"169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.31.196.1",
	"192.52.193.1", "192.88.99.1", "192.168.0.1", "192.168.255.255", "192.175.48.1", "198.18.0.1", "198.19.255.255",
	"198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16",
	"::", "::1", "::127.0.0.1", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1",
	"64:ff9b::169.254.169.254", "64:ff9b:1::1", "100::1", "2001::1", "2001:10::1", "2001:20::1", "2001:db8::1",
	"2002:7f00:1::", "2002:a9fe:a9fe::1", "2620:4f:8000::1", "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254",
	"fe80::1", "febf::1", "fec0::1", "ff02::1",
}

func TestNamesOfSpecialAddressesAreNotConnectedTo(t *testing.T) {
	t.Parallel()
	zones := map[string]zone{}
	for i, addr := range specials {
		zones[fmt.Sprintf("s%d.test", i)] = always(addr)
	}
	resolver := serveDNS(t, zones)
	c := newClient(t, egress.Config{Resolver: resolver})
	// With an exempt network, names are no longer refused by their form: the dialer alone decides.
	exempting := newClient(t, egress.Config{Resolver: resolver, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}})
	for i, addr := range specials {
		host := fmt.Sprintf("s%d.test", i)
		for _, call := range []struct {
			client *egress.Client
			base   string
		}{{c, "https://" + host}, {exempting, "https://" + host}, {exempting, "http://" + host}} {
			var seen dials
			_, err := call.client.Do(seen.watch(t.Context()), egress.Request{URL: call.base + "/", Hosts: hostsOf(t, call.base)})
			assertRefused(t, call.base+", which is "+addr, err, reason.HostNotPublic)
			tried, connected := seen.get()
			if len(tried) == 0 || len(connected) > 0 {
				t.Errorf("%s, which is %s: tried %v and connected to %v, want the dialer to refuse it", call.base, addr, tried, connected)
			}
			if strings.Contains(fmt.Sprint(err), addr) {
				t.Errorf("%v tells the caller what a private name resolves to", err)
			}
		}
	}
}

func TestPlainHTTPToAPublicAddressIsRefusedInTheDialer(t *testing.T) {
	t.Parallel()
	c := newClient(t, egress.Config{
		Allow:    loopback,
		Resolver: serveDNS(t, map[string]zone{"public.test": always("93.184.216.34", "2606:2800:220:1::1")}),
	})
	var seen dials
	_, err := c.Do(seen.watch(t.Context()), egress.Request{URL: "http://public.test/", Hosts: hostsOf(t, "http://public.test")})
	assertRefused(t, "Do", err, reason.InputInvalid)
	if tried, connected := seen.get(); len(tried) == 0 || len(connected) > 0 {
		t.Errorf("tried %v and connected to %v, want the dialer to refuse", tried, connected)
	}
}

// In these the exempt 127.0.0.1 stands for a public address, and 127.0.0.2 for a private one: both can be watched.
func TestFieldD03RebindingDoesNotPass(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close") // so that each call dials
	}))
	t.Cleanup(srv.Close)
	port := fmt.Sprint(srv.Listener.Addr().(*net.TCPAddr).Port)
	hits, _ := countConnections(t, "127.0.0.2:"+port)
	c := newClient(t, egress.Config{Allow: loopback, Resolver: serveDNS(t, map[string]zone{
		"rebind.test": func(n int) []string {
			if n == 1 {
				return []string{"127.0.0.1"}
			}
			return []string{"127.0.0.2"}
		},
	})})
	base := "http://rebind.test:" + port
	if resp, err := get(t, c, base, "/"); err != nil || resp.Status != http.StatusOK {
		t.Fatalf("first call = %+v, %v, want 200", resp, err)
	}
	for range 3 {
		_, err := get(t, c, base, "/")
		assertRefused(t, "call after rebinding", err, reason.HostNotPublic)
	}
	if hits.Load() != 0 {
		t.Errorf("the private address was connected to %d times, want 0", hits.Load())
	}
}

func TestFieldD03OfSeveralAddressesOnlyTheAllowedAreConnectedTo(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
	}))
	t.Cleanup(srv.Close)
	port := fmt.Sprint(srv.Listener.Addr().(*net.TCPAddr).Port)
	hits, _ := countConnections(t, "127.0.0.2:"+port)
	hits6, _ := countConnections(t, "[::1]:"+port)
	resolver := serveDNS(t, map[string]zone{
		"mixed1.test": always("127.0.0.1", "127.0.0.2"),
		"mixed2.test": always("127.0.0.2", "127.0.0.1"),
		"both.test":   always("::1", "127.0.0.1"), // Happy Eyeballs: both families are tried at once
		"mapped.test": always("::ffff:127.0.0.2", "127.0.0.1"),
		"alias.test":  always("mixed2.test"),
		"none.test":   always("::1", "127.0.0.2", "::ffff:10.0.0.1"),
		"to.test":     always("none.test"), // which a public name may be an alias of
		"far.test":    always("to.test"),
		"rebind.test": func(n int) []string {
			if n == 1 {
				return []string{"mixed1.test"}
			}
			return []string{"none.test"}
		},
	})
	c := newClient(t, egress.Config{Allow: loopback, Resolver: resolver})
	for _, host := range []string{"mixed1.test", "mixed2.test", "both.test", "mapped.test", "alias.test", "rebind.test"} {
		var seen dials
		base := "http://" + host + ":" + port
		resp, err := c.Do(seen.watch(t.Context()), egress.Request{URL: base, Hosts: hostsOf(t, base)})
		if err != nil || resp.Status != http.StatusOK {
			t.Errorf("%s: %+v, %v, want 200", host, resp, err)
		}
		if _, connected := seen.get(); len(connected) != 1 || connected[0] != "127.0.0.1:"+port {
			t.Errorf("%s: connected to %v, want 127.0.0.1 alone", host, connected)
		}
	}
	for _, host := range []string{"none.test", "to.test", "far.test", "rebind.test"} {
		_, err := get(t, c, "http://"+host+":"+port, "/")
		assertRefused(t, host, err, reason.HostNotPublic)
	}
	if hits.Load() != 0 || hits6.Load() != 0 {
		t.Errorf("forbidden addresses were connected to %d and %d times, want 0", hits.Load(), hits6.Load())
	}
}

func TestExemptNetworkIsReachedByAddressAndByName(t *testing.T) {
	t.Parallel()
	hits, addr := countConnections(t, "127.0.0.1:0")
	port := fmt.Sprint(addr.(*net.TCPAddr).Port)
	c := newClient(t, egress.Config{
		Allow:    loopback,
		Resolver: serveDNS(t, map[string]zone{"my_tools": always("127.0.0.1"), "tools.internal": always("127.0.0.1")}),
	})
	bases := []string{"http://127.0.0.1:", "https://127.0.0.1:", "https://[::ffff:127.0.0.1]:", "http://my_tools:", "https://tools.internal:"}
	for i, base := range bases {
		var seen dials
		_, err := c.Do(seen.watch(t.Context()), egress.Request{URL: base + port, Hosts: hostsOf(t, base+port)})
		assertRefused(t, base, err, reason.UpstreamUnavailable) // it says nothing
		if _, connected := seen.get(); len(connected) == 0 {
			t.Errorf("call %d, %s: not connected to", i, base)
		}
	}
	if hits.Load() < int32(len(bases)) {
		t.Errorf("connected to %d times, want at least %d", hits.Load(), len(bases))
	}
}

func TestThereIsNoOffSwitch(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"0.0.0.0/0", "::/0", "128.0.0.0/1", "2000::/3", "0.0.0.0/7", "fc00::/6", "::ffff:10.0.0.0/104"} {
		if _, err := egress.New(egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix(p)}}); err == nil {
			t.Errorf("New with %s exempt succeeds", p)
		}
	}
	if _, err := egress.New(egress.Config{Allow: []netip.Prefix{{}}}); err == nil {
		t.Error("New with an invalid prefix succeeds")
	}
	for _, p := range []string{"10.0.0.0/8", "fc00::/7", "127.0.0.0/8", "::1/128", "192.168.1.7/32"} {
		c, err := egress.New(egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix(p)}})
		if err != nil {
			t.Errorf("New with %s exempt: %v", p, err)
			continue
		}
		c.Close()
	}
}

// No t.Parallel: the environment is the whole process's.
func TestProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	hits, addr := countConnections(t, "127.0.0.1:0")
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, "http://"+addr.String())
	}
	c := newClient(t, egress.Config{Allow: loopback, Resolver: serveDNS(t, nil)})
	for _, base := range []string{"https://vendor.test", "http://vendor.test"} {
		_, err := get(t, c, base, "/")
		assertRefused(t, base, err, reason.UpstreamUnavailable)
	}
	if hits.Load() != 0 {
		t.Errorf("the proxy was connected to %d times, want 0", hits.Load())
	}
}
