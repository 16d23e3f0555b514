package web

import (
	"slices"
	"strings"

	"github.com/georld/rld/rules"
)

// mapper is a Mapping made ready: parameters are numbered, so that reading a
// query fills a list and no map.
type mapper struct {
	domain      string
	params      []string // by number
	descriptors [][]mappedEntry
}

// mappedEntry takes its entry from the first source that has a value.
type mappedEntry struct{ sources []source }

type source struct {
	param int
	key   string
}

func newMapper(m Mapping) *mapper {
	out := &mapper{domain: m.Domain}
	for _, entries := range m.Descriptors {
		var d []mappedEntry
		for _, e := range entries {
			sources := []source{out.source(e.Param, e.Key)}
			if e.Fallback != "" {
				sources = append(sources, out.source(e.Fallback, e.FallbackKey))
			}
			d = append(d, mappedEntry{sources})
		}
		out.descriptors = append(out.descriptors, d)
	}
	return out
}

func (m *mapper) source(param, key string) source {
	if key == "" {
		key = param
	}
	at := slices.Index(m.params, param)
	if at < 0 {
		at = len(m.params)
		m.params = append(m.params, param)
	}
	return source{at, key}
}

// read makes a call of the query of /api/v1/rate_limit.
func (m *mapper) read(raw string, x *exchange) error {
	values := make([]string, len(m.params))
	err := readPairs(raw, func(name, value string) error { return m.readParam(&x.params, values, name, value) })
	if err != nil {
		return err
	}
	x.call.Domain, x.call.Peek = m.domain, x.peek
	for _, d := range m.descriptors {
		m.addDescriptor(x, d, values)
	}
	if len(x.call.Descriptors) == 0 {
		return badRequest("nothing to limit by: use at least one of %s", strings.Join(m.params, ", "))
	}
	return nil
}

func (m *mapper) readParam(p *params, values []string, name, raw string) error {
	if known, err := p.read(name, raw); known {
		return err
	}
	at := slices.Index(m.params, name)
	if at < 0 {
		return badRequest("parameter %s is not known; the mapping has %s, and hits, peek, deny_status and headers",
			quote(name), strings.Join(m.params, ", "))
	}
	value, err := unescape(raw)
	if err != nil {
		return badRequest("parameter %s: %v", name, err)
	}
	if values[at] != "" {
		return badRequest("parameter %s is given twice", name)
	}
	values[at] = value
	return nil
}

// addDescriptor adds the entries of d that have a value.
func (m *mapper) addDescriptor(x *exchange, d []mappedEntry, values []string) {
	var entries []rules.Entry
	for _, e := range d {
		for _, s := range e.sources {
			if v := values[s.param]; v != "" {
				entries = append(entries, rules.Entry{Key: s.key, Value: v})
				break
			}
		}
	}
	if len(entries) > 0 {
		x.addDescriptor(entries, x.hits, rules.Override{})
	}
}
