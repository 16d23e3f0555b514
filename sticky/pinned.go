package sticky

// Pinned reports whether the layout names the home region of a rule.
func (v *Routing) Pinned(rule uint64) bool {
	_, ok := v.pins[rule]
	return ok
}

// Regions returns how many regions the layout has: floors are shares of them, and
// so the same for all who go by it.
func (v *Routing) Regions() int { return len(v.areas) }
