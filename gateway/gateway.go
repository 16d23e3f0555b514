// Package gateway maps the requests that a gateway (nginx, Caddy, Traefik,
// HAProxy, Envoy) asks about to a domain and descriptors. It reads the headers
// of the question: those of the client, which a gateway passes on, and those by
// which gateways describe the request. A mapping with TargetPath reads the
// request line of the question in place of the latter, and never both. All
// bytes of a header are its value, so no client can add an entry or change the
// hits.
//
// A header that comes twice, or a value that cannot be read, is a Fault: the
// request is denied, and never decided by one of two readings.
package gateway

import (
	"cmp"
	"strconv"

	"github.com/georld/rld/rules"
)

// Request is a question of a gateway. Read does not change it.
type Request struct {
	// Header has names in the canonical form of net/http.
	Header map[string][]string
	// Host is the header Host, which net/http keeps apart.
	Host string
	// Line describes the request for a mapping with TargetPath. It is nil for
	// all others.
	Line *Line
}

// Line is the description of the request in the request line of a question.
type Line struct {
	Method string
	// Target is path and query as the client sent them, "" for a question
	// without.
	Target string
}

// Call is what a mapping makes of a request.
type Call struct {
	Domain string
	// Descriptors may be empty. All have the same hits, 1 or more.
	Descriptors []rules.Descriptor
	// Exempt is set for a request that is admitted and not counted.
	Exempt bool
}

// Mapping is a compiled mapping. It is immutable.
type Mapping struct {
	Answers // with the defaults filled in
	Target  Target

	domain      string
	descriptors [][]entry
	entries     int // of all descriptors
	cost        Cost
	exempt      reader // nil for none
}

// entry is a compiled entry.
type entry struct {
	key     string
	read    reader
	missing WhenMissing
}

// reader returns the value of a source, "" where it is missing.
type reader func(r *Request) (value string, fault Reason)

// Compile returns the mapping of settings. The error is that of Validate.
func Compile(s Settings) (*Mapping, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	m := &Mapping{Answers: s.withDefaults(), Target: cmp.Or(s.Target, TargetHeaders), domain: s.Domain}
	if s.Cost != nil {
		m.cost = Cost{Header: canonical(s.Cost.Header), Max: s.Cost.Max}
		if m.cost.Max == 0 {
			m.cost.Max = defaultCost
		}
	}
	if s.Exempt != nil {
		m.exempt = newClient(s.Exempt).read
	}
	for _, list := range s.Descriptors {
		var entries []entry
		for _, e := range list {
			entries = append(entries, entry{e.Key, checked(&e.Source), e.WhenMissing})
		}
		m.descriptors = append(m.descriptors, entries)
		m.entries += len(entries)
	}
	return m, nil
}

// withDefaults returns the answers without zero values, but for ChallengeURL.
func (a Answers) withDefaults() Answers {
	if a.OnNoMatch == "" {
		a.OnNoMatch = NoMatchAllow
	}
	if a.Action == "" {
		a.Action = ActionDeny
	}
	if a.DenyStatus == 0 {
		a.DenyStatus = defaultDeny
	}
	if a.FailureStatus == 0 {
		a.FailureStatus = defaultFailure
	}
	return a
}

// Status returns the status of a denial.
func (m *Mapping) Status() int {
	switch {
	case m.Action == ActionLog:
		return statusOK
	case m.Action == ActionChallenge && m.ChallengeURL != "":
		return statusFound
	case m.Action == ActionChallenge:
		return statusUnauthorized
	}
	return m.DenyStatus
}

// Domain returns the domain of every call.
func (m *Mapping) Domain() string { return m.domain }

// Read returns the call of a request. The error is a *Fault, and the request
// must then be denied.
func (m *Mapping) Read(r *Request) (Call, error) {
	if (r.Line != nil) != (m.Target == TargetPath) {
		return Call{}, &Fault{BadURI, "target"}
	}
	if m.exempt != nil {
		switch network, fault := m.exempt(r); {
		case fault != noFault:
			return Call{}, &Fault{fault, "exempt"}
		case network != "":
			return Call{Domain: m.domain, Exempt: true}, nil
		}
	}
	hits, fault := m.hits(r)
	if fault != noFault {
		return Call{}, &Fault{fault, "cost"}
	}
	c := Call{Domain: m.domain, Descriptors: make([]rules.Descriptor, 0, len(m.descriptors))}
	entries := make([]rules.Entry, 0, m.entries)
	for _, list := range m.descriptors {
		first := len(entries)
		for i := range list {
			e := &list[i]
			value, fault := e.value(r)
			if fault != noFault {
				return Call{}, &Fault{fault, e.key}
			}
			if value != "" {
				entries = append(entries, rules.Entry{Key: e.key, Value: value})
			}
		}
		if last := len(entries); last > first {
			c.Descriptors = append(c.Descriptors, rules.Descriptor{Entries: entries[first:last:last], Hits: hits})
		}
	}
	return c, nil
}

// value returns the value of an entry, "" to leave the entry out.
func (e *entry) value(r *Request) (string, Reason) {
	value, fault := e.read(r)
	switch {
	case fault != noFault || value != "":
		return value, fault
	case e.missing.Deny:
		return "", Missing
	}
	return e.missing.Constant, noFault
}

// hits returns the cost of a request. It is never 0, which would charge
// nothing.
func (m *Mapping) hits(r *Request) (uint64, Reason) {
	if m.cost.Header == "" {
		return 1, noFault
	}
	text, fault := r.one(m.cost.Header)
	if fault != noFault || text == "" {
		return 1, fault
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < 1 || n > m.cost.Max {
		return 0, BadCost
	}
	return n, noFault
}
