package web

import (
	"net/http"
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
	switch name {
	case paramDomain, paramDescriptor, paramHits, paramPeek, paramDenyStatus, paramHeaders:
		return true
	}
	return false
}

// params is the state of reading a query: the parameters seen so far, and the
// cost.
type params struct {
	ask  *ask
	hits uint64
	peek bool
	seen [5]string // the reserved parameters so far; d is not among them
}

// once refuses a reserved parameter that was there before.
func (p *params) once(name string) error {
	for i := range p.seen {
		switch p.seen[i] {
		case name:
			return badRequest("parameter %s is given twice", name)
		case "":
			p.seen[i] = name
			return nil
		}
	}
	return nil
}

// question reads hits and peek. known is false for any other parameter.
func (p *params) question(name, raw string) (known bool, err error) {
	if name != paramHits && name != paramPeek {
		return false, nil
	}
	value, err := p.value(name, raw)
	if err != nil {
		return true, err
	}
	if name == paramPeek {
		p.peek = value == "true"
		if !p.peek && value != "false" {
			err = badRequest("parameter peek: %s is neither true nor false", quote(value))
		}
		return true, err
	}
	p.hits, err = strconv.ParseUint(value, 10, 64)
	if err != nil {
		err = badRequest("parameter hits: %s is not a whole number from 0 to 18446744073709551615", quote(value))
	}
	return true, err
}

// answer reads deny_status and headers. known is false for any other
// parameter.
func (p *params) answer(name, raw string) (known bool, err error) {
	if name != paramDenyStatus && name != paramHeaders {
		return false, nil
	}
	value, err := p.value(name, raw)
	if err != nil {
		return true, err
	}
	if name == paramHeaders {
		if value != "legacy" {
			return true, badRequest("parameter headers: %s is not known; legacy adds X-RateLimit-*", quote(value))
		}
		p.ask.legacy = true
		return true, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < http.StatusBadRequest || n > 599 {
		return true, badRequest("parameter deny_status: %s is not an HTTP status from 400 to 599", quote(value))
	}
	p.ask.denyStatus = n
	return true, nil
}

// value decodes a reserved parameter that may be given once.
func (p *params) value(name, raw string) (string, error) {
	if err := p.once(name); err != nil {
		return "", err
	}
	value, err := unescape(raw)
	if err != nil {
		return "", badRequest("parameter %s: %v", name, err)
	}
	return value, nil
}

// decodeName decodes the name of a parameter.
func decodeName(raw string) (string, error) {
	name, err := unescape(raw)
	if err != nil {
		return "", badRequest("the parameter name %s: %v", quote(raw), err)
	}
	return name, nil
}
