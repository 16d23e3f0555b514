package limits

import "github.com/georld/rld/rules"

// setting is a field as it was written. The zero value is a field that was
// not; a field whose value is null counts as not written too, but keeps its
// place for messages.
type setting struct{ key, value *node }

// given reports whether the field has a value.
func (s setting) given() bool { return !s.value.isNull() }

// pos returns where to point at for the field.
func (s setting) pos() rules.Position {
	if s.value != nil {
		return s.value.pos
	}
	return rules.Position{}
}

// record is a map of the language: the fields it sets.
type record struct {
	at  *node
	set [fieldCount]setting
	// meant are the fields that unknown names were likely meant to be, so
	// that they are not said to be missing too. The last one is for none.
	meant [fieldCount + 1]bool
	// limit is the rate_limit of a descriptor. Two of them in one map, or
	// one from a merge and one beside it, are taken together field by
	// field, as the reference does.
	limit *record
}

// apply sets the fields of a map in r, in the order of the file. It returns
// false, with the fault noted, when n is no map. A field name that is unknown
// is a fault; one of upstream's at a place where upstream does not look is
// only warned of.
func (l *loader) apply(n *node, at place, r *record) bool {
	if n.kind != mapping {
		l.errorf(n.pos, "write fields as name: value", "%s where a map is wanted", describe(n))
		return false
	}
	r.at = n
	var here [fieldCount]bool // set by this map itself
	for _, f := range n.fields {
		if f.key.isMerge() {
			before := r.set
			l.merge(f.value, at, r)
			l.warnOverridden(&before, r, &here)
			r.at = n
			continue
		}
		id, ok := l.fieldName(f.key, at)
		if !ok {
			r.meant[id] = true
			continue
		}
		if !l.inPlace(id, f, at) {
			continue
		}
		if here[id] {
			l.warnf(f.key.pos, "keep one", "%s is given twice in one map; the last one is in force", id)
		}
		here[id] = true
		r.set[id] = setting(f)
		if id == fRateLimit {
			l.applyLimit(f.value, r)
		}
	}
	return true
}

// applyLimit sets the rate_limit of a descriptor.
func (l *loader) applyLimit(n *node, r *record) {
	if n.isNull() {
		r.limit = nil
		return
	}
	limit := r.limit
	if limit == nil {
		limit = &record{}
	}
	if l.apply(n, inLimit, limit) {
		r.limit = limit
	}
}

// merge takes in the maps that the key "<<" names. Where there are several,
// the first has the last word.
func (l *loader) merge(n *node, at place, r *record) {
	switch n.kind {
	case mapping:
		l.apply(n, at, r)
		return
	case sequence:
		for i := len(n.items) - 1; i >= 0; i-- {
			if n.items[i].kind != mapping {
				l.errorf(n.items[i].pos, "name maps, such as <<: [*a, *b]",
					"<< with %s in its list", describe(n.items[i]))
				continue
			}
			l.apply(n.items[i], at, r)
		}
		return
	}
	l.errorf(n.pos, "name a map, such as <<: *base", "<< with %s", describe(n))
}

// warnOverridden warns of fields that a merge took back because it stands
// behind them.
func (l *loader) warnOverridden(before *[fieldCount]setting, r *record, here *[fieldCount]bool) {
	for id := range fieldCount {
		if was := before[id]; here[id] && r.set[id] != was {
			l.warnf(was.key.pos, "put << first", "the << behind it takes the place of this %s", id)
		}
	}
}

// inPlace reports whether a field may stand at a place, and says so when not.
func (l *loader) inPlace(id fieldID, f field, at place) bool {
	want := vocabulary[id].at
	if want&at != 0 {
		return true
	}
	if id.own() || at == inDefaults {
		l.errorf(f.key.pos, "it goes "+want.String(), "%s has no place %s", id, at)
		return false
	}
	l.warnf(f.key.pos, "it goes "+placesOf(want), "%s has no effect %s", id, at)
	if id != fMetadata {
		l.ignored(f.value)
	}
	return false
}

// placesOf names the first place of a set.
func placesOf(p place) string {
	for one := inFile; one <= inReplaces; one <<= 1 {
		if p&one != 0 {
			return one.String()
		}
	}
	return p.String()
}

// ignored looks through a value that has no effect for what would refuse the
// file upstream all the same.
func (l *loader) ignored(n *node) {
	switch n.kind {
	case mapping:
		for _, f := range n.fields {
			if f.key.isMerge() {
				l.ignored(f.value)
			} else if id, ok := l.fieldName(f.key, inDescriptor); ok && id != fMetadata {
				l.ignored(f.value)
			}
		}
	case sequence:
		for _, item := range n.items {
			if l.isMap(item) {
				l.ignored(item)
			}
		}
	case scalar:
		l.scalarText(n, "a value")
	}
}

// isMap reports whether an item of a list is a map, and says so when not.
func (l *loader) isMap(n *node) bool {
	if n.kind == mapping {
		return true
	}
	l.errorf(n.pos, "write it as - name: value", "%s in a list of maps", describe(n))
	return false
}

// describe names a value for a message.
func describe(n *node) string {
	if n.kind != scalar {
		return n.kind.String()
	}
	v, _ := n.resolve()
	switch v.kind {
	case nullValue:
		return "nothing"
	case boolValue:
		return "the boolean " + quote(n.text)
	case intValue, bigValue, floatValue:
		return "the number " + clip(n.text)
	}
	return "the text " + quote(n.text)
}
