package egress

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"github.com/getgraft/graft/internal/reason"
)

// Hosts is the set of places that a request may go to: origins (RFC 6454 §4: scheme, host and port), each whole or below a
// path. The zero value is the empty set, which lets nothing through.
type Hosts struct {
	places []place
}

// A place is an origin, or what it has below a path.
type place struct {
	origin
	path string // as prefixOf makes it; "" is all of the origin
}

func (p place) String() string { return p.origin.String() + p.path }

// ParseHosts makes a set of entries such as "api.github.com", "api.github.com:8443", "http://10.0.0.5:8080" and
// "https://gitlab.example.com/api/v4". The scheme is https and the port is the scheme's where an entry says nothing else. A
// path lets through what is at it and below it, by whole segments. An error is a *reason.Refusal about the field "hosts".
func ParseHosts(entries ...string) (Hosts, error) {
	var h Hosts
	for _, entry := range entries {
		if !strings.Contains(entry, "://") {
			entry = "https://" + entry
		}
		u, err := url.Parse(entry)
		if err != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(entry, "#") {
			return Hosts{}, reason.Refuse(reason.InputInvalid, "A host is a name with an optional scheme, port and path, such as api.example.com.").Field("hosts")
		}
		o, refusal := originOf(u)
		if refusal != nil {
			return Hosts{}, refusal.Field("hosts")
		}
		path, ok := prefixOf(u)
		if !ok {
			return Hosts{}, reason.Refuse(reason.InputInvalid, "The path after the host has an empty segment, a dot segment or an encoded slash.").Field("hosts")
		}
		if p := (place{o, path}); !slices.Contains(h.places, p) {
			h.places = append(h.places, p)
		}
	}
	return h, nil
}

// Strings returns the entries in their canonical form, as ParseHosts takes them.
func (h Hosts) Strings() []string {
	entries := make([]string, len(h.places))
	for i, p := range h.places {
		entries[i] = p.String()
	}
	return entries
}

// check refuses a URL, which leads to an origin, unless the set has it.
func (h Hosts) check(to origin, u *url.URL) *reason.Refusal {
	known := false
	for _, p := range h.places {
		if p.origin != to {
			continue
		}
		if p.path == "" {
			return nil
		}
		known = true
	}
	if !known {
		return reason.Refuse(reason.HostNotInSet, "%s is not a host that this request may go to.", to).With("hosts", h.Strings())
	}
	path := u.EscapedPath()
	if !staysBelow(path) {
		return reason.Refuse(reason.InputInvalid, "The path has an empty segment, a dot segment, a backslash or a control character, which may lead elsewhere than it says.").Field("url")
	}
	for _, p := range h.places {
		if p.origin == to && isBelow(path, p.path) {
			return nil
		}
	}
	return reason.Refuse(reason.HostNotInSet, "The path is not one that this request may go to on %s.", to).With("hosts", h.Strings())
}

// An origin is where a request goes, in its one canonical spelling: two origins are the same place if and only
// if they are ==.
type origin struct {
	scheme string // "https" or "http"
	host   string // lower-case ASCII without a final dot, or an address as netip prints it
	port   uint16
	addr   netip.Addr // what host is, when it is an address
}

// String is the origin as ParseHosts takes it: https and the scheme's own port are left out.
func (o origin) String() string {
	if o.scheme == "https" {
		return o.hostPort()
	}
	return o.scheme + "://" + o.hostPort()
}

// hostPort is the authority of a URL to the origin.
func (o origin) hostPort() string {
	if o.port != defaultPort(o.scheme) {
		return net.JoinHostPort(o.host, strconv.Itoa(int(o.port)))
	}
	if o.addr.Is6() {
		return "[" + o.host + "]"
	}
	return o.host
}

func defaultPort(scheme string) uint16 {
	if scheme == "http" {
		return 80
	}
	return 443
}

// originOf returns where u leads. Its refusals name the fault and repeat nothing of u but a canonical host.
func originOf(u *url.URL) (origin, *reason.Refusal) {
	if u.Scheme != "https" && u.Scheme != "http" {
		return origin{}, reason.Refuse(reason.InputInvalid, "Only https and http are spoken.")
	}
	if u.User != nil {
		return origin{}, reason.Refuse(reason.InputInvalid, "A user name or password before the host is not sent. Use a connection's credential.")
	}
	if u.Opaque != "" || u.Host == "" {
		return origin{}, reason.Refuse(reason.InputInvalid, "The host is missing.")
	}
	o := origin{scheme: u.Scheme, port: defaultPort(u.Scheme)}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return origin{}, reason.Refuse(reason.InputInvalid, "The port is not a number from 1 to 65535.")
		}
		o.port = uint16(n)
	}
	var refusal *reason.Refusal
	o.host, o.addr, refusal = canonicalHost(u.Hostname())
	return o, refusal
}

// canonicalHost returns the one spelling of a host, and the address when the host is one. What might be read as
// an address by some resolver but is not the usual spelling of one (127.1, 0x7f000001, 0177.0.0.1) is refused.
func canonicalHost(host string) (string, netip.Addr, *reason.Refusal) {
	if strings.ContainsAny(host, ":%") {
		return canonicalAddr(host)
	}
	host = strings.ToLower(host)
	if !isASCII(host) || strings.Contains(host, "xn--") {
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil {
			return "", netip.Addr{}, notAHost()
		}
		host = ascii
	}
	host = strings.TrimSuffix(host, ".")
	if !isName(host) {
		return "", netip.Addr{}, notAHost()
	}
	if endsInNumber(host) {
		return canonicalAddr(host)
	}
	return host, netip.Addr{}, nil
}

// canonicalAddr takes an address in its usual spelling. A mapped IPv4 address is the IPv4 address it leads to;
// a zone names an interface of this machine and is refused.
func canonicalAddr(host string) (string, netip.Addr, *reason.Refusal) {
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Zone() != "" {
		return "", netip.Addr{}, reason.Refuse(reason.HostNotPublic, "The host is an address in a spelling that is not accepted. Use the vendor's host name.")
	}
	addr = addr.Unmap()
	return addr.String(), addr, nil
}

func notAHost() *reason.Refusal {
	return reason.Refuse(reason.InputInvalid, "The host is not a name that DNS could hold.")
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
}

// isName reports whether s is labels of letters, digits, '-' and '_' (which vendors and private networks do use)
// within the lengths of RFC 1035 §2.3.4.
func isName(s string) bool {
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// endsInNumber is the test by which a URL parser takes a host for an IPv4 address (WHATWG URL §3.5): its last
// label is digits, or a hexadecimal number.
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok && strings.Trim(hex, "0123456789abcdef") == "" {
		return true
	}
	return strings.Trim(last, "0123456789") == ""
}
