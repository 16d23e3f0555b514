package web

import (
	"strings"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// readQuery reads the query of /v1/check into a call. Its memory is bounded by
// the length of the query and by the bounds of package node.
func (x *exchange) readQuery(raw string) error {
	var loose []rules.Entry // the parameters that are not reserved
	err := readPairs(raw, func(name, value string) (err error) {
		known, err := x.params.read(name, value)
		switch {
		case known:
			return err
		case name == paramDomain:
			x.call.Domain, err = x.value(name, value)
			if err == nil && x.call.Domain == "" {
				err = badRequest("parameter domain is empty")
			}
			return err
		case name == paramDescriptor && len(loose) > 0:
			return mixed(loose[0].Key)
		case name == paramDescriptor:
			return x.readDescriptor(value)
		}
		loose, err = x.readLoose(loose, name, value)
		return err
	})
	if err != nil {
		return err
	}
	if x.call.Domain == "" {
		return badRequest("parameter domain is missing: use domain=NAME")
	}
	if len(loose) > 0 {
		x.addDescriptor(loose, 0, rules.Override{})
	}
	if len(x.call.Descriptors) == 0 {
		return badRequest("no descriptor: use d=key:value,key:value, or key=value for a single one")
	}
	x.call.Peek = x.peek
	for i := range x.call.Descriptors {
		x.call.Descriptors[i].Hits = x.hits
	}
	return nil
}

// readLoose adds a parameter to the entries of the only descriptor.
func (x *exchange) readLoose(entries []rules.Entry, name, raw string) ([]rules.Entry, error) {
	switch {
	case len(x.call.Descriptors) > 0:
		return nil, mixed(name)
	case name == "":
		return nil, badRequest("the parameter with the value %s has no name", quote(raw))
	case len(entries) == node.MaxEntries:
		return nil, badRequest("parameter %s: more than %d entries in the descriptor", quote(name), node.MaxEntries)
	}
	value, err := unescape(raw)
	if err != nil {
		return nil, badRequest("parameter %s: %v", quote(name), err)
	}
	return append(entries, rules.Entry{Key: name, Value: value}), nil
}

// readDescriptor adds the descriptor key:value,key:value. It is split before
// it is decoded.
func (x *exchange) readDescriptor(raw string) error {
	at := len(x.call.Descriptors)
	switch {
	case at == node.MaxDescriptors:
		return badRequest("more than %d descriptors; ask in several calls", node.MaxDescriptors)
	case raw == "":
		return badRequest("parameter d, descriptor %d: it is empty; use d=key:value", at)
	}
	var entries []rules.Entry
	for text := range strings.SplitSeq(raw, ",") {
		n := len(entries)
		if n == node.MaxEntries {
			return badRequest("parameter d, descriptor %d: more than %d entries", at, node.MaxEntries)
		}
		e, err := readEntry(text)
		if err != nil {
			return badRequest("parameter d, descriptor %d, entry %d: %v", at, n, err)
		}
		entries = append(entries, e)
	}
	x.addDescriptor(entries, 0, rules.Override{})
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
