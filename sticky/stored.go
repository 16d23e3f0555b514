package sticky

import (
	"errors"
	"fmt"

	"github.com/georld/rld/crdt"
)

// Apply adds an entry of the log, in the order in which entries were stored.
// The records come in no order. The error says what is wrong with the entry;
// then the log is not to be trusted.
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
		next := e.Next.Clone()
		s.Next = &next
	default:
		if err := e.Meta.validate(); err != nil {
			return err
		}
		s.Meta = *e.Meta
	}
	return nil
}

func (s *Stored) applyRecord(rec Record) error {
	if err := rec.validate(); err != nil {
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

// Validate returns what is wrong with what was stored. The layout may be
// missing: a log that ended after the first entry.
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
		if err := s.Records[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

func validateNext(l, next *Layout) error {
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
		return errors.New("instant of the ended marks before 1970: want one after")
	}
	return validateGenerations(m.Generations)
}

func (r *Record) validate() error {
	if r.Ballot.Round > MaxRound+1 {
		return fmt.Errorf("record of round %d: want at most %d", r.Ballot.Round, uint64(MaxRound))
	}
	if err := r.Watermarks.Validate(); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}
