package rules

// table is a map from text for the few names that most levels have. It compares
// up to scanned of them one by one, which is faster than hashing. The zero
// value is empty.
type table[V any] struct {
	names  []string
	values []V
	index  map[string]int // nil while names are few
}

const scanned = 8

// get returns the value of a name, false without one.
func (t *table[V]) get(name string) (v V, ok bool) {
	if t.index != nil {
		if i, found := t.index[name]; found {
			return t.values[i], true
		}
		return v, false
	}
	for i, n := range t.names {
		if n == name {
			return t.values[i], true
		}
	}
	return v, false
}

// put adds a name that is not in the table.
func (t *table[V]) put(name string, v V) {
	t.names, t.values = append(t.names, name), append(t.values, v)
	if t.index != nil {
		t.index[name] = len(t.names) - 1
	} else if len(t.names) > scanned {
		t.index = make(map[string]int, 2*len(t.names))
		for i, n := range t.names {
			t.index[n] = i
		}
	}
}
