package epoch

// crash restarts a participant from its record; its clock goes back.
func (w *world) crash(i int) {
	w.endRun(i)
	w.crashes--
	w.left[i].there = w.left[i].there && w.mutation == mutationTwice
	t, err := Restore(w.tables[i].owner, w.stored[i])
	if err != nil {
		panic(err)
	}
	switch w.mutation {
	case mutationNoFence:
		t.fence, t.unknown = always, always
	case mutationForgetGrant:
		t.floor = always
	}
	w.tables[i] = t
	if w.now[i] > 0 && w.mutation != mutationNoFence {
		w.now[i]--
	}
}

// resume restarts a participant that stopped. It continues the use of the
// stopped run; its clock goes back.
func (w *world) resume(i int) {
	w.resumes--
	left := &w.left[i]
	record := w.stored[i]
	switch w.mutation {
	case mutationNoAccounts:
		w.endRun(i)
	case mutationTwice: // that of the first stop, whatever happened since
		record = left.record
		for x := range w.cur[i] {
			w.past[i][x] += w.cur[i][x] - min(w.cur[i][x], left.used[x])
			w.cur[i][x] = left.used[x]
		}
	}
	left.there = w.mutation == mutationTwice
	t, err := Resume(w.tables[i].owner, record)
	if err != nil {
		panic(err)
	}
	switch w.mutation {
	case mutationNoUnknown:
		t.unknown = always
	case mutationFreeWindows:
		for k := range t.entries {
			t.entries[k].extended = never
		}
	}
	w.tables[i], w.stored[i] = t, record
	w.now[i] = max(0, w.now[i]-1)
}

// lapse restarts a participant without its record as if it started for the
// first time.
func (w *world) lapse(i int) {
	w.endRun(i)
	w.lapses--
	w.left[i].there = false
	old := w.tables[i]
	fence := max(w.now[i], old.fence) // the caller must know a bound
	t, err := New(old.owner, w.genesis)
	if err != nil {
		panic(err)
	}
	t.fence = fence
	w.stored[i] = Record{}
	w.tables[i] = t
	w.extend(i)
}

func (w *world) endRun(i int) {
	for x := range w.cur[i] {
		w.past[i][x] += w.cur[i][x]
		w.cur[i][x] = 0
	}
}
