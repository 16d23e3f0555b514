package rules

import (
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// Entry is one key and value of a descriptor.
type Entry struct{ Key, Value string }

// Descriptor is one question of a call: its entries, left to right, and its
// hits.
type Descriptor struct {
	Entries []Entry
	// Hits is the number of hits to charge. 0 charges nothing. Edges fill in
	// their default of 1.
	Hits uint64
	// Override replaces the configured limit if its Unit is set.
	Override Override
}

// Override is a limit that came with the request. The zero value means none.
type Override struct {
	Requests uint32
	Unit     Unit
}

// ID identifies a rule by the descriptors that it matches: hash(domain, path of
// keys and values). It is the same on every daemon and across reloads.
type ID uint64

// Position is the place of a rule in its file, for messages. The zero value
// means that the rule was made by code.
type Position struct {
	File         string
	Line, Column int
}

// String returns file:line:column.
func (p Position) String() string {
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

// Rule is one entry of the descriptor tree at which a request can end. It is
// immutable once it is part of a Set.
type Rule struct {
	ID ID
	// Index is the rule's position in Set.Rules.
	Index  int
	Domain string
	// Entries are the path of the rule. Read only.
	Entries []Entry
	// Path is the readable form of the entries: "tier=premium > user_id".
	Path string
	// Limit is nil for an entry that whitelists the requests it matches.
	Limit *Limit
	// Patterns holds, per entry of the path, the pattern that replaces the
	// request's value in the counter key (share_threshold), or "". It is nil if
	// no entry has one.
	Patterns []string
	// Entity is true if the path has a key-only or wildcard entry without
	// share_threshold: each value has its own counter.
	Entity bool
	// Metadata is the rule's metadata as plain YAML values (map[string]any,
	// []any, string, bool, int64, uint64, float64, nil), or nil. Read only.
	Metadata map[string]any
	Pos      Position

	keyPrefix []byte // see Hasher.Rule; nil for a rule that counts nothing
}

// Shared returns the name of a rule between daemons: it is the same wherever
// the rule has the same ID and counts on the same grid. The rule has a limit.
func (r *Rule) Shared() uint64 { return uint64(r.ID) ^ r.Limit.Grid()*0x9e3779b97f4a7c15 }

// Display returns the rule's name in answers: the limit's name if it has one,
// else its path.
func (r *Rule) Display() string {
	if r.Limit != nil && r.Limit.Name != "" {
		return r.Limit.Name
	}
	return r.Path
}

// pathID hashes a domain and a path of keys and values, each with its length,
// so that concatenation cannot make two paths collide.
func pathID(domain string, path []Entry) ID {
	b := make([]byte, 0, 128)
	b = appendText(b, domain)
	for _, e := range path {
		b = appendText(b, e.Key)
		b = appendText(b, e.Value)
	}
	return ID(xxhash.Sum64(b))
}

func appendText(b []byte, s string) []byte {
	b = strconv.AppendInt(b, int64(len(s)), 10)
	b = append(b, ':')
	return append(b, s...)
}
