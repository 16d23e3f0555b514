package rules

import (
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// Entry is one key and value of a descriptor.
type Entry struct{ Key, Value string }

// Descriptor is one question of a call: its entries, left to right, and how
// many hits it stands for.
type Descriptor struct {
	Entries []Entry
	// Hits to charge; 0 is a peek, which charges nothing. Edges fill in
	// their default of 1.
	Hits uint64
	// Override is used instead of the configured limit when its Unit is set.
	Override Override
}

// Override is a limit that came with the request. The zero value means none.
type Override struct {
	Requests uint32
	Unit     Unit
}

// ID identifies a rule by what it matches: hash(domain, path of keys and
// values). It is the same on every daemon and across reloads.
type ID uint64

// Position is where a rule was written, for messages. The zero value means
// that it was made by hand.
type Position struct {
	File         string
	Line, Column int
}

// String returns file:line:column.
func (p Position) String() string {
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

// Rule is one entry of the descriptor tree that a request can end at.
// It is immutable once it is part of a Set.
type Rule struct {
	ID ID
	// Index is the rule's position in Set.Rules.
	Index  int
	Domain string
	// Path is the rule for people: "tier=premium > user_id".
	Path string
	// Limit is nil for an entry that whitelists what it matches.
	Limit *Limit
	// Patterns holds, per entry of the path, the pattern that takes the
	// place of the request's value in the counter key (share_threshold), or
	// "". It is nil when no entry has one.
	Patterns []string
	// Entity is true when the path has a key-only or wildcard entry without
	// share_threshold: each value has a counter of its own.
	Entity bool
	// Metadata is the rule's metadata as plain YAML values (map[string]any,
	// []any, string, bool, int64, uint64, float64, nil), or nil. Read only.
	Metadata map[string]any
	Pos      Position
}

// Shared returns the name of a rule between daemons: it is the same wherever
// the rule has the same ID and counts on the same grid. The rule has a limit.
func (r *Rule) Shared() uint64 { return uint64(r.ID) ^ r.Limit.Grid()*0x9e3779b97f4a7c15 }

// Display returns what a caller is told the rule's name is: the limit's name
// where it has one, else its path.
func (r *Rule) Display() string {
	if r.Limit != nil && r.Limit.Name != "" {
		return r.Limit.Name
	}
	return r.Path
}

// pathID hashes a domain and a path of keys and values, length-prefixed so
// that no two paths collide by concatenation.
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
