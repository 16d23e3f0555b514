package quorum

import (
	"errors"
	"fmt"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// Entry is an entry of the acceptor's log; exactly one field is set. Entries
// are appended in order. An entry counts only if all entries before it are on
// disk too.
type Entry struct {
	Record *sticky.Record
	Layout *route.Layout // replaces the layout in force
	Next   *route.Layout // sealed in favor of Next: no vote under the one in force any more
	Meta   *Meta
}

// Meta is an acceptor's state beside its records and layouts.
type Meta struct {
	// Generation is the store number of the acceptor's disk, and Writes the
	// number of its stores.
	Generation, Writes uint64
	// Voting is false from the loss of a disk to the end of the copy.
	Voting bool
	// Ended is the instant before which ended watermarks are forgotten, in Unix
	// milliseconds. Accepts of them are refused.
	Ended       int64
	Generations route.Generations
}

// Stored is the state that an acceptor has on disk: the sum of its entries.
type Stored struct {
	Meta    Meta
	Layout  route.Layout
	Next    *route.Layout
	Records []sticky.Record // each key once, in any order

	index map[crdt.Key]int // of Records by key, while entries are applied
}

// Apply adds an entry of the log; entries come in the order in which they were
// stored. The records are in no order afterwards. After an error the log cannot
// be trusted.
func (s *Stored) Apply(e Entry) error {
	set := 0
	for _, is := range [...]bool{e.Record != nil, e.Layout != nil, e.Next != nil, e.Meta != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("entry with %d fields set: want one", set)
	}
	switch {
	case e.Record != nil:
		return s.applyRecord(*e.Record)
	case e.Layout != nil:
		if err := e.Layout.Validate(); err != nil {
			return err
		}
		s.Layout = e.Layout.Clone()
		if s.Next != nil && s.Layout.Number >= s.Next.Number {
			s.Next = nil
		}
	case e.Next != nil:
		if err := validateNext(&s.Layout, e.Next); err != nil {
			return err
		}
		s.Next = new(e.Next.Clone())
	default:
		if err := e.Meta.validate(); err != nil {
			return err
		}
		s.Meta = *e.Meta
	}
	return nil
}

func (s *Stored) applyRecord(rec sticky.Record) error {
	if err := rec.Validate(); err != nil {
		return err
	}
	if s.index == nil {
		s.index = make(map[crdt.Key]int, len(s.Records))
		for i := range s.Records {
			s.index[s.Records[i].Key] = i
		}
	}
	if i, ok := s.index[rec.Key]; ok {
		s.Records[i] = rec
		return nil
	}
	s.index[rec.Key] = len(s.Records)
	s.Records = append(s.Records, rec)
	return nil
}

// Validate returns an error for a state that no acceptor can have stored. There
// may be no layout yet.
func (s *Stored) Validate() error {
	if s.Layout.Number > 0 {
		if err := s.Layout.Validate(); err != nil {
			return err
		}
	}
	if s.Next != nil {
		if err := validateNext(&s.Layout, s.Next); err != nil {
			return err
		}
	}
	if err := s.Meta.validate(); err != nil {
		return err
	}
	for i := range s.Records {
		if err := s.Records[i].Validate(); err != nil {
			return err
		}
	}
	return nil
}

func validateNext(l, next *route.Layout) error {
	if err := next.Validate(); err != nil {
		return err
	}
	if next.Number <= l.Number {
		return fmt.Errorf("layout %d after %d: want a greater number", next.Number, l.Number)
	}
	return nil
}

func (m *Meta) validate() error {
	if m.Ended < 0 {
		return errors.New("instant of the ended watermarks before 1970: want one after")
	}
	return m.Generations.Validate()
}
