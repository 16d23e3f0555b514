package web

import (
	"cmp"
	"slices"
	"strings"

	"github.com/georld/rld/rules"
)

// params returns the names of the parameters, each once, in their order.
func (m *Mapping) params() []string {
	var out []string
	for _, entries := range m.Descriptors {
		for _, e := range entries {
			for _, name := range []string{e.Param, e.Fallback} {
				if name != "" && !slices.Contains(out, name) {
					out = append(out, name)
				}
			}
		}
	}
	return out
}

// read makes a call of the query of /api/v1/rate_limit.
func (m *Mapping) read(raw string, x *exchange) error {
	names, values := m.params(), make(map[string]string)
	err := readPairs(raw, func(name, raw string) error {
		if known, err := x.params.read(name, raw); known {
			return err
		}
		if !slices.Contains(names, name) {
			return badRequest("parameter %s is not known; the mapping has %s, and hits, peek, deny_status and headers",
				quote(name), strings.Join(names, ", "))
		}
		value, err := unescape(raw)
		if err != nil {
			return badRequest("parameter %s: %v", name, err)
		}
		if values[name] != "" {
			return badRequest("parameter %s is given twice", name)
		}
		values[name] = value
		return nil
	})
	if err != nil {
		return err
	}
	x.call.Domain, x.call.Peek = m.Domain, x.peek
	for _, list := range m.Descriptors {
		var entries []rules.Entry
		for _, e := range list {
			if v := values[e.Param]; v != "" {
				entries = append(entries, rules.Entry{Key: cmp.Or(e.Key, e.Param), Value: v})
			} else if v := values[e.Fallback]; v != "" {
				entries = append(entries, rules.Entry{Key: cmp.Or(e.FallbackKey, e.Fallback), Value: v})
			}
		}
		if len(entries) > 0 {
			x.addDescriptor(entries, x.hits, rules.Override{})
		}
	}
	if len(x.call.Descriptors) == 0 {
		return badRequest("nothing to limit by: use at least one of %s", strings.Join(names, ", "))
	}
	return nil
}
