package sticky

// Pinned reports whether the layout names the home region of a rule.
func (v *View) Pinned(rule uint64) bool {
	_, ok := v.pins[rule]
	return ok
}

// Regions returns how many regions the layout has: floors are shares of them, and
// so the same for all who go by it.
func (v *View) Regions() int { return len(v.areas) }
