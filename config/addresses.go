package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/georld/rld/internal/yamlpos"
)

// addresses is a list of host:port.
func addresses(p *[]string) value {
	return list(p, "host:port,...", "host:port", "[10.0.0.1:7946, 10.0.0.2:7946]")
}

// names is a list of names.
func names(p *[]string) value {
	return list(p, "name,...", "a name", "[us-0, us-1, us-2]")
}

// list is a list of single values: separated by commas, or a list in a file.
// For messages, one describes an item and example is a list.
func list(p *[]string, kind, one, example string) value {
	v := value{
		kind: kind,
		set: func(s string) error {
			if strings.TrimSpace(s) == "" {
				return errors.New("is empty: give " + one + ", several with commas between them, or leave it out for none")
			}
			list := strings.Split(s, ",")
			for i := range list {
				list[i] = strings.TrimSpace(list[i])
			}
			*p = list
			return nil
		},
		get:   func() string { return strings.Join(*p, ",") },
		datum: func() datum { return textsDatum(*p) },
	}
	v.read = func(c *yamlpos.Collector) yamlpos.Reader {
		return func(n *yamlpos.Node, name string) bool {
			if n.Kind == yamlpos.Scalar && !n.IsNull() {
				return settingOf(c, v.set)(n, name)
			}
			return texts(c, p, example)(n, name)
		}
	}
	return v
}

// splitDial splits an address that is dialed. The error names a correct form.
func splitDial(addr string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(addr)
	if err != nil || !hostName(host) {
		return "", "", fmt.Errorf("%s is not host:port such as 10.0.0.1:7070, [fd00::1]:7070 or rld.example:7070",
			excerpt(addr))
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", "", fmt.Errorf("%s has no port that can be dialed: a number from 1 to 65535", excerpt(addr))
	}
	if unspecified(host) {
		return "", "", fmt.Errorf("%s is no address that others can dial: give one of this machine's own",
			excerpt(addr))
	}
	return host, port, nil
}

// network parses a network of addresses. The error names a correct form.
func network(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return p, fmt.Errorf("%s is no network such as 10.0.0.0/16 or fd00:1::/32", excerpt(text))
	case p != p.Masked():
		return p, fmt.Errorf("%s has bits beyond its length: give %s", excerpt(text), p.Masked())
	case p.Addr().Is4In6():
		return p, fmt.Errorf("%s is a network of IPv4 in IPv6: give it as IPv4", excerpt(text))
	}
	return p, nil
}

// excerpt quotes a text, cut after 100 bytes.
func excerpt(s string) string {
	const most = 100
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strconv.Quote(s)
}

// hostName reports whether s is an IP address or may be a DNS name.
func hostName(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	const longest = 253
	if s == "" || len(s) > longest {
		return false
	}
	return !slices.ContainsFunc([]byte(s), func(b byte) bool {
		return !alphanumeric(b) && b != '.' && b != '-' && b != '_'
	})
}

// unspecified reports whether host stands for all addresses of a machine.
func unspecified(host string) bool {
	if host == "" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsUnspecified()
}
