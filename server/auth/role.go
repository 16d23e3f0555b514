package auth

import (
	"crypto/x509"
	"net/url"
	"slices"
	"strings"
)

// Role is the permission of an operator. A greater one includes the lesser.
type Role uint8

// The roles.
const (
	// None allows nothing.
	None Role = iota
	// View reads what reveals no keys of callers.
	View
	// Operate changes limits and drains regions, and reveals keys.
	Operate
	// Admin decides who is in the cluster.
	Admin
)

// String returns the role as files and certificates have it.
func (r Role) String() string { return [...]string{"none", "view", "operate", "admin"}[r] }

// ParseRole returns the role of a name; None has none.
func ParseRole(s string) (r Role, ok bool) {
	for r := View; r <= Admin; r++ {
		if s == r.String() {
			return r, true
		}
	}
	return None, false
}

// operatorScheme and operatorDomain begin the URI of an operator's certificate:
// spiffe://rld-operator/ROLE/NAME.
const operatorScheme, operatorDomain = "spiffe", "rld-operator"

// OperatorURI returns the URI that makes a certificate that of an operator.
func OperatorURI(r Role, name string) *url.URL {
	return &url.URL{Scheme: operatorScheme, Host: operatorDomain, Path: "/" + r.String() + "/" + name}
}

// OperatorOf returns the role and the name of an operator's certificate. One
// without exactly one URI of an operator has the role None.
func OperatorOf(c *x509.Certificate) (r Role, name string) {
	uris := slices.DeleteFunc(slices.Clone(c.URIs), func(u *url.URL) bool {
		return u.Scheme != operatorScheme || u.Host != operatorDomain
	})
	if len(uris) != 1 {
		return None, ""
	}
	role, name, _ := strings.Cut(strings.TrimPrefix(uris[0].Path, "/"), "/")
	r, ok := ParseRole(role)
	if !ok || !ValidName(name) || uris[0].String() != OperatorURI(r, name).String() {
		return None, ""
	}
	return r, name
}

// Operator returns the name and the role of an operator's token; ok is false
// for a token that is not in force. The Authorizer is one of ParseOperators.
func (a *Authorizer) Operator(token string) (name string, r Role, ok bool) {
	if a == nil || token == "" {
		return "", None, false
	}
	e := a.find(token)
	if e == nil {
		return "", None, false
	}
	return e.Name, e.Role, true
}
