package web

import (
	"strings"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// readQuery reads the query of /v1/check into a call. Its memory is bounded by
// the length of the query and by the bounds of package node.
func (x *exchange) readQuery(raw string) error {
	if err := checkLength(raw); err != nil {
		return err
	}
	p := params{ask: &x.ask, hits: 1}
	for walk := (pairs{raw}); ; {
		rawName, value, ok := walk.next()
		if !ok {
			break
		}
		name, err := decodeName(rawName)
		if err != nil {
			return err
		}
		if err := x.readParam(&p, name, value); err != nil {
			return err
		}
	}
	return x.finishQuery(&p)
}

// readParam reads one parameter. Until finishQuery, x.entries without a
// descriptor are those of the parameters that are not reserved.
func (x *exchange) readParam(p *params, name, raw string) error {
	if known, err := p.question(name, raw); known {
		return err
	}
	if known, err := p.answer(name, raw); known {
		return err
	}
	switch name {
	case paramDomain:
		value, err := p.value(name, raw)
		if err == nil && value == "" {
			err = badRequest("parameter domain is empty")
		}
		x.call.Domain = value
		return err
	case paramDescriptor:
		return x.readDescriptor(raw)
	}
	return x.readLoose(name, raw)
}

// finishQuery checks what only shows at the end, and fills in the hits.
func (x *exchange) finishQuery(p *params) error {
	if x.call.Domain == "" {
		return badRequest("parameter domain is missing: use domain=NAME")
	}
	if len(x.call.Descriptors) == 0 {
		if len(x.entries) == 0 {
			return badRequest("no descriptor: use d=key:value,key:value, or key=value for a single one")
		}
		x.addDescriptor(0, 0, rules.Override{})
	}
	x.call.Peek = p.peek
	for i := range x.call.Descriptors {
		x.call.Descriptors[i].Hits = p.hits
	}
	return nil
}

// readLoose adds a parameter as an entry of the only descriptor.
func (x *exchange) readLoose(name, raw string) error {
	switch {
	case len(x.call.Descriptors) > 0:
		return mixed(name)
	case name == "":
		return badRequest("the parameter with the value %s has no name", quote(raw))
	case len(x.entries) == node.MaxEntries:
		return badRequest("parameter %s: more than %d entries in the descriptor", quote(name), node.MaxEntries)
	}
	value, err := unescape(raw)
	if err != nil {
		return badRequest("parameter %s: %v", quote(name), err)
	}
	x.entries = append(x.entries, rules.Entry{Key: name, Value: value})
	return nil
}

// readDescriptor adds the descriptor key:value,key:value. It is split before
// it is decoded.
func (x *exchange) readDescriptor(raw string) error {
	at := len(x.call.Descriptors)
	start := len(x.entries)
	switch {
	case at == 0 && start > 0:
		return mixed(x.entries[0].Key)
	case at == node.MaxDescriptors:
		return badRequest("more than %d descriptors; ask in several calls", node.MaxDescriptors)
	case raw == "":
		return badRequest("parameter d, descriptor %d: it is empty; use d=key:value", at)
	}
	for more := true; more; {
		var text string
		text, raw, more = strings.Cut(raw, ",")
		n := len(x.entries) - start
		if n == node.MaxEntries {
			return badRequest("parameter d, descriptor %d: more than %d entries", at, node.MaxEntries)
		}
		e, err := readEntry(text)
		if err != nil {
			return badRequest("parameter d, descriptor %d, entry %d: %v", at, n, err)
		}
		x.entries = append(x.entries, e)
	}
	x.addDescriptor(start, 0, rules.Override{})
	return nil
}

// readEntry reads key:value. Only the first colon splits, and an escaped one
// never does.
func readEntry(raw string) (rules.Entry, error) {
	rawKey, rawValue, ok := strings.Cut(raw, ":")
	if !ok {
		return rules.Entry{}, badRequest("%s has no ':'; use key:value, and %%2C for a comma in a value",
			quote(raw))
	}
	key, err := unescape(rawKey)
	if err != nil {
		return rules.Entry{}, err
	}
	if key == "" {
		return rules.Entry{}, badRequest("%s has no key before the ':'", quote(raw))
	}
	value, err := unescape(rawValue)
	return rules.Entry{Key: key, Value: value}, err
}

func mixed(name string) error {
	return badRequest("parameter %s beside d: entries are either all in d or all parameters", quote(name))
}
