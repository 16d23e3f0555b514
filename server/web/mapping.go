package web

import (
	"errors"
	"fmt"

	"github.com/georld/rld/node"
)

// Mapping maps the parameters of /api/v1/rate_limit to descriptors.
type Mapping struct {
	// Domain of every call.
	Domain string `yaml:"domain" json:"domain"`
	// Descriptors of every call, each its entries in order. Entries without
	// a value are left out, and descriptors without an entry likewise.
	Descriptors [][]MappedEntry `yaml:"descriptors" json:"descriptors"`
}

// MappedEntry is one entry of a descriptor and where its value comes from. A
// parameter with an empty value counts as missing.
type MappedEntry struct {
	// Param is the parameter that holds the value.
	Param string `yaml:"param" json:"param"`
	// Key of the entry; "" means the name of the parameter.
	Key string `yaml:"key,omitempty" json:"key,omitempty"`
	// Fallback is the parameter that takes the entry's place where Param is
	// missing; "" means none.
	Fallback string `yaml:"fallback,omitempty" json:"fallback,omitempty"`
	// FallbackKey is the key of the entry then; "" means the name of the
	// fallback. A separate key prevents a user with the name of an address from
	// using up that address's limit.
	FallbackKey string `yaml:"fallback_key,omitempty" json:"fallback_key,omitempty"`
}

// DefaultMapping is one descriptor in the domain edge: tier, endpoint and
// user_id, and ip where user_id is missing.
func DefaultMapping() Mapping {
	return Mapping{
		Domain: "edge",
		Descriptors: [][]MappedEntry{{
			{Param: "tier"},
			{Param: "endpoint"},
			{Param: "user_id", Fallback: "ip"},
		}},
	}
}

// Validate returns all faults of a mapping, joined, or nil.
func (m Mapping) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if m.Domain == "" {
		fault("mapping: domain must not be empty")
	}
	if n := len(m.Descriptors); n == 0 || n > node.MaxDescriptors {
		fault("mapping: %d descriptors, want 1 to %d", n, node.MaxDescriptors)
	}
	for i, entries := range m.Descriptors {
		if n := len(entries); n == 0 || n > node.MaxEntries {
			fault("mapping: descriptor %d: %d entries, want 1 to %d", i, n, node.MaxEntries)
		}
		for j, e := range entries {
			if p := e.problem(); p != "" {
				fault("mapping: descriptor %d, entry %d: %s", i, j, p)
			}
		}
	}
	return errors.Join(faults...)
}

func (e MappedEntry) problem() string {
	switch {
	case e.Param == "":
		return "param must not be empty"
	case e.Param == e.Fallback:
		return fmt.Sprintf("param %q is its own fallback", e.Param)
	case e.Fallback == "" && e.FallbackKey != "":
		return fmt.Sprintf("fallback_key %q without a fallback", e.FallbackKey)
	}
	for _, name := range []string{e.Param, e.Fallback} {
		if reserved(name) {
			return fmt.Sprintf("parameter %q is reserved; pick a name other than domain, d, hits, "+
				"peek, deny_status and headers", name)
		}
	}
	return ""
}
