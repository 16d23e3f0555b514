package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// addresses is a list of host:port: separated by commas, or a list in a file.
func addresses(p *[]string) (value, func(*yaml.Node) error) {
	return list(p, "host:port,...", "host:port", "host:port such as [10.0.0.1:7946, 10.0.0.2:7946]")
}

// list is a list of single values: separated by commas, or a list in a file.
// one says for messages what each of them is, many what the list holds.
func list(p *[]string, kind, one, many string) (value, func(*yaml.Node) error) {
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
	read := func(n *yaml.Node) error {
		if n.Kind != yaml.SequenceNode {
			text, err := scalar(n)
			if err != nil {
				return errors.New("must be a list of " + many)
			}
			return v.set(text)
		}
		list, faults := texts(n)
		if len(faults) > 0 {
			return faults
		}
		*p = list
		return nil
	}
	return v, read
}

// texts takes a list of single values over.
func texts(n *yaml.Node) (list []string, faults nodeFaults) {
	for _, item := range n.Content {
		text, err := scalar(item)
		if err != nil {
			faults.add(item, "", "%s", err)
			continue
		}
		list = append(list, text)
	}
	return list, faults
}

// splitDial takes an address that is dialed apart. The error says what would
// be right.
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

// excerpt quotes what may be long.
func excerpt(s string) string {
	const most = 100
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strconv.Quote(s)
}

// hostName reports whether s is an IP address or may be a name in DNS.
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
