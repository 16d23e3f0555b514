package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxName is the length of the longest name of a region or a daemon, in bytes.
const maxName = 63

// uriPrefix begins a name as a URI, and dnsSuffix ends one as a DNS name.
const (
	uriPrefix = "spiffe://rld/"
	dnsSuffix = ".rld"
)

// Forms are the two forms of a name in a certificate, for messages.
const Forms = "spiffe://rld/REGION/NAME as a URI, or NAME.REGION.rld as a DNS name"

// Name is the daemon that a certificate names.
type Name struct{ Region, Daemon string }

// String returns region/daemon, as logs have it.
func (n Name) String() string { return n.Region + "/" + n.Daemon }

// URI returns the name as a subject alternative name.
func (n Name) URI() string { return uriPrefix + n.Region + "/" + n.Daemon }

// Check returns an error unless both parts are 1 to 63 letters, digits, dots,
// underscores and dashes, the first a letter or a digit.
func (n Name) Check() error {
	for _, part := range []struct{ what, text string }{{"region", n.Region}, {"name", n.Daemon}} {
		if len(part.text) < 1 || len(part.text) > maxName || strings.IndexAny(part.text[:1], "._-") == 0 ||
			strings.ContainsFunc(part.text, foreign) {
			return fmt.Errorf("%s %q: want 1 to %d letters, digits, dots, underscores and dashes, "+
				"the first a letter or a digit", part.what, part.text, maxName)
		}
	}
	return nil
}

func foreign(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
}

// cutPrefix returns the part of a URI after uriPrefix, whose letters may have
// any case.
func cutPrefix(s string) (rest string, ok bool) {
	if len(s) < len(uriPrefix) || !strings.EqualFold(s[:len(uriPrefix)], uriPrefix) {
		return "", false
	}
	return s[len(uriPrefix):], true
}

// cutSuffix returns the part of a DNS name before dnsSuffix, likewise.
func cutSuffix(s string) (rest string, ok bool) {
	at := len(s) - len(dnsSuffix)
	if at < 0 || !strings.EqualFold(s[at:], dnsSuffix) {
		return "", false
	}
	return s[:at], true
}

// NamesOf returns the daemons that a certificate names, sorted, each once. They
// are its subject alternative names of the Forms; others are ignored. The error
// is for one that begins or ends as a name and is none, such as a wildcard.
func NamesOf(c *x509.Certificate) ([]Name, error) {
	var names []Name
	for _, u := range c.URIs {
		path, ok := cutPrefix(u.String())
		if !ok {
			continue
		}
		region, daemon, _ := strings.Cut(path, "/")
		name := Name{region, daemon}
		if err := name.Check(); err != nil {
			return nil, fmt.Errorf("URI %q: %w; want spiffe://rld/REGION/NAME", u, err)
		}
		names = append(names, name)
	}
	for _, dns := range c.DNSNames {
		rest, ok := cutSuffix(dns)
		if !ok {
			continue
		}
		dot := strings.LastIndexByte(rest, '.')
		if dot < 0 {
			return nil, fmt.Errorf("DNS name %q: want NAME.REGION.rld", dns)
		}
		name := Name{rest[dot+1:], rest[:dot]}
		if err := name.Check(); err != nil {
			return nil, fmt.Errorf("DNS name %q: %w; want NAME.REGION.rld", dns, err)
		}
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b Name) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(names), nil
}

// Require returns nil if name is among those of a certificate. The error lists
// these.
func Require(names []Name, name Name) error {
	switch {
	case slices.Contains(names, name):
		return nil
	case len(names) == 0:
		return errors.New("the certificate names no daemon: want " + Forms)
	}
	return fmt.Errorf("the certificate is of %s, want one of %s", List(names), name)
}

// List returns the names for a message, the first few of many.
func List(names []Name) string {
	const most = 3
	var all []string
	for i, n := range names {
		if i == most {
			all = append(all, fmt.Sprintf("%d more", len(names)-most))
			break
		}
		all = append(all, n.String())
	}
	return strings.Join(all, ", ")
}
