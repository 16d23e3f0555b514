package keytable

import "github.com/georld/rld/rules"

// Shares divides the room for keys among rules. A part of it is reserved, in
// equal parts for all rules with a limit: a rule with fewer keys than its part
// always finds room, and one with more uses the room that is reserved for no
// other rule. So a flood of keys of one rule takes room from this rule alone,
// and a rule alone may use nearly all of it.
//
// Keys without a rule have a part like a rule. The zero value has no room.
//
// Invariant: keys + unused <= room, unless SetRules or Move broke it. Then only
// rules below their part get room until it holds again.
type Shares struct {
	room   int
	rate   rules.PPM // the reserved part of room
	rules  []holding // for keys without a rule, then one per rule
	keys   int       // of all rules
	unused int       // the sum of holding.unused
}

// holding is the number of keys of one rule.
type holding struct {
	keys int
	part int // reserved for the rule
}

func (h holding) unused() int { return max(0, h.part-h.keys) }

// NewShares returns the shares of an empty table of room keys, and no rules.
// The reserve is a part of room, 0 for none.
func NewShares(room int, reserve rules.PPM) Shares {
	s := Shares{room: room, rate: min(reserve, rules.Whole)}
	s.SetRules(nil, func(*rules.Rule) bool { return false })
	return s
}

// SetRules begins again, without any keys, for other rules. counts reports
// whether a rule has keys in the table. Call Add for each key that stays.
func (s *Shares) SetRules(all []*rules.Rule, counts func(*rules.Rule) bool) {
	s.rules, s.keys, s.unused = make([]holding, len(all)+1), 0, 0
	sharers := 1
	for _, r := range all {
		if counts(r) {
			sharers++
		}
	}
	part := int(int64(s.room) * int64(s.rate) / int64(rules.Whole) / int64(sharers))
	for i := range s.rules {
		if i == 0 || counts(all[i-1]) {
			s.rules[i].part = part
			s.unused += part
		}
	}
}

// Fits reports whether the table has room for one more key of a rule, by its
// index, -1 for none, after promised keys of any rules.
func (s *Shares) Fits(rule int32, promised int) bool {
	if s.keys+promised >= s.room {
		return false
	}
	at := &s.rules[rule+1]
	return at.keys+promised < at.part || s.keys+promised+s.unused < s.room
}

// Add counts a new key of a rule.
func (s *Shares) Add(rule int32) { s.change(rule, 1) }

// Remove counts a key less of a rule.
func (s *Shares) Remove(rule int32) { s.change(rule, -1) }

// Move counts a key that belongs to another rule from now on.
func (s *Shares) Move(from, to int32) {
	s.change(from, -1)
	s.change(to, 1)
}

func (s *Shares) change(rule int32, by int) {
	at := &s.rules[rule+1]
	s.unused -= at.unused()
	at.keys += by
	s.keys += by
	s.unused += at.unused()
}

// Keys returns the number of keys of a rule.
func (s *Shares) Keys(rule int32) int { return s.rules[rule+1].keys }

// Len returns the number of keys of all rules.
func (s *Shares) Len() int { return s.keys }

// Room returns the bound on the keys of all rules.
func (s *Shares) Room() int { return s.room }
