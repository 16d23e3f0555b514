package web

import (
	"net/http"
	"slices"
	"strconv"
)

// The reserved parameters of a query.
const (
	paramDomain     = "domain"
	paramDescriptor = "d"
	paramHits       = "hits"
	paramPeek       = "peek"
	paramDenyStatus = "deny_status"
	paramHeaders    = "headers"
)

// reserved reports whether a parameter cannot be the key of an entry.
func reserved(name string) bool {
	return name == paramDomain || name == paramDescriptor || name == paramHits || name == paramPeek || forAnswer(name)
}

// forAnswer reports whether a parameter is about the answer, not the question.
func forAnswer(name string) bool { return name == paramDenyStatus || name == paramHeaders }

// params are the reserved parameters of a query: the cost, and how the caller
// wants to be answered.
type params struct {
	hits       uint64
	peek       bool
	denyStatus int
	// failureStatus is the status of a call that an owner should have decided.
	failureStatus int
	legacy        bool     // X-RateLimit-*
	seen          []string // so far, but for d, which may be repeated
}

// read reads hits, peek, deny_status or headers. known is false for any other
// parameter.
func (p *params) read(name, raw string) (known bool, err error) {
	if name != paramHits && name != paramPeek && !forAnswer(name) {
		return false, nil
	}
	value, err := p.value(name, raw)
	if err != nil {
		return true, err
	}
	switch name {
	case paramHits:
		if p.hits, err = strconv.ParseUint(value, 10, 64); err != nil {
			err = badRequest("parameter hits: %s is not a whole number from 1 to 18446744073709551615", quote(value))
		} else if p.hits == 0 {
			err = noHits("parameter hits")
		}
	case paramPeek:
		if p.peek = value == "true"; !p.peek && value != "false" {
			err = badRequest("parameter peek: %s is neither true nor false", quote(value))
		}
	case paramHeaders:
		if p.legacy = value == "legacy"; !p.legacy && value != "draft" {
			err = badRequest("parameter headers: %s is not known; draft is RateLimit-* alone, legacy adds X-RateLimit-*", quote(value))
		}
	case paramDenyStatus:
		p.denyStatus, err = strconv.Atoi(value)
		if err != nil || p.denyStatus < http.StatusBadRequest || p.denyStatus > 599 {
			err = badRequest("parameter deny_status: %s is not an HTTP status from 400 to 599", quote(value))
		}
	}
	return true, err
}

// value decodes a reserved parameter that may be given once.
func (p *params) value(name, raw string) (string, error) {
	if slices.Contains(p.seen, name) {
		return "", badRequest("parameter %s is given twice", name)
	}
	p.seen = append(p.seen, name)
	value, err := unescape(raw)
	if err != nil {
		return "", badRequest("parameter %s: %v", name, err)
	}
	return value, nil
}

// noHits refuses a call of 0 hits: a caller may mean either of 1 and none.
func noHits(where string) error {
	return badRequest("%s is 0: leave it out for 1 hit; with peek the call charges nothing", where)
}
