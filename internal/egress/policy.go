package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"
)

var (
	errNotPublic = errors.New("egress: the address is not public")
	errPlainHTTP = errors.New("egress: plain http to a public address")
	errOtherPort = errors.New("egress: another port than the scheme's own")
)

// A policy says which addresses may be connected to. There is no policy that allows everything.
type policy struct {
	exempt []netip.Prefix
	guard  *ssrf.Guardian
}

// The largest private networks: fc00::/7 (RFC 4193) and 10.0.0.0/8 (RFC 1918).
const (
	minBits4 = 8
	minBits6 = 7
)

func newPolicy(exempt []netip.Prefix) (*policy, error) {
	for _, p := range exempt {
		addr := p.Addr()
		switch {
		case !p.IsValid() || addr.Is4In6():
			return nil, fmt.Errorf("exempt network %s: not a network in its own form", p)
		case addr.Is4() && p.Bits() < minBits4, addr.Is6() && p.Bits() < minBits6:
			return nil, fmt.Errorf("exempt network %s: larger than any private network (at least /%d, for IPv6 /%d)", p, minBits4, minBits6)
		}
	}
	return &policy{
		exempt: slices.Clone(exempt),
		guard: ssrf.New(
			ssrf.WithAnyPort(), // the host set says which
			// Azure serves its machines' metadata and keys on a public address.
			ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix("168.63.129.16/32")),
		),
	}, nil
}

// check says whether addr may be connected to with scheme: nil, errNotPublic or errPlainHTTP.
func (p *policy) check(scheme string, addr netip.Addr) error {
	if p.exempts(addr) {
		return nil
	}
	if p.guard.SafeAddr(addr) != nil {
		return errNotPublic
	}
	if scheme != "https" {
		return errPlainHTTP
	}
	return nil
}

// exempts reports whether addr is in a network that the operator exempted.
func (p *policy) exempts(addr netip.Addr) bool {
	return slices.ContainsFunc(p.exempt, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// checkOrigin refuses what can be refused without asking DNS. A name passes where a network is exempt, because
// it may lead there; then control decides.
func (p *policy) checkOrigin(o origin, ownPort bool) error {
	switch {
	case o.addr.IsValid():
		return p.checkBoth(o.scheme, netip.AddrPortFrom(o.addr, o.port), ownPort)
	case len(p.exempt) > 0:
		return nil
	case isPrivateName(o.host):
		return errNotPublic
	case o.scheme != "https":
		return errPlainHTTP
	case ownPort && o.port != defaultPort(o.scheme):
		return errOtherPort
	}
	return nil
}

// isPrivateName reports names that no public DNS answers: single labels, and RFC 6761 (localhost), RFC 6762
// (local), RFC 8375 (home.arpa) and ICANN's reservation of internal.
func isPrivateName(host string) bool {
	if !strings.Contains(host, ".") {
		return true
	}
	for _, suffix := range []string{".localhost", ".local", ".internal", ".home.arpa"} {
		if strings.HasSuffix(host, suffix) || host == suffix[1:] {
			return true
		}
	}
	return false
}

// A control is what net.Dialer calls for each address it is about to connect to, after DNS and before the first packet:
// whatever a name resolved to earlier, or resolves to next, the address judged is the one used.
type control = func(network, address string, _ syscall.RawConn) error

func (p *policy) control(scheme string, ownPort bool) control {
	return func(network, address string, _ syscall.RawConn) error {
		addr, err := netip.ParseAddrPort(address)
		if err != nil || network != "tcp4" && network != "tcp6" {
			return errNotPublic
		}
		return p.checkBoth(scheme, addr, ownPort)
	}
}

// checkBoth is check, and refuses with errOtherPort too where the port has to be the scheme's own. In an exempt network
// it need not be.
func (p *policy) checkBoth(scheme string, addr netip.AddrPort, ownPort bool) error {
	if err := p.check(scheme, addr.Addr()); err != nil {
		return err
	}
	if ownPort && addr.Port() != defaultPort(scheme) && !p.exempts(addr.Addr()) {
		return errOtherPort
	}
	return nil
}
