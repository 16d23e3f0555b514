package epoch

// EntryView is the state of one epoch in a table, for distribution and status
// pages. Its slices belong to the table: do not modify them, and do not keep
// them over the next call that may change the table.
type EntryView struct {
	Epoch Epoch
	// From is the first window the epoch is settled for. It is valid only if
	// Settled.
	From    int64
	Settled bool
	// Mine reports whether the owner has acknowledged the epoch.
	Mine bool
	// Acks are the known acknowledgements, by participant. A table made by New
	// has its own among them as soon as it is made, stored or not.
	Acks []Ack
}

// Len returns how many epochs the table keeps.
func (t *Table) Len() int { return len(t.entries) }

// At returns the epoch at place i, from 0, ascending by ID. The first is
// settled for all windows still in use.
func (t *Table) At(i int) EntryView {
	e := &t.entries[i]
	return EntryView{Epoch: e.Epoch, From: e.from, Settled: e.from != never, Mine: e.mine, Acks: e.acks}
}

// Revision changes whenever an epoch may have changed a result of Share or
// Part. Extensions and bounds do not count: they change only results of 0.
func (t *Table) Revision() uint64 { return t.revision }

// Since returns the start of the first window in which the owner may hold
// rights by itself, in Unix milliseconds: an earlier run whose use it does not
// know, or a former cluster, may have used older ones. It is 0 for no bound.
func (t *Table) Since() int64 {
	if t.unknown == always {
		return 0
	}
	return t.unknown + 1
}

// Bounds returns the bounds of the stored record.
func (t *Table) Bounds() Bounds { return t.durable }
