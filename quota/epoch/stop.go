package epoch

import "github.com/georld/rld/internal/sat"

// Stop ends the use of the table, before its daemon stops: the owner uses no
// window that begins later, and the next record bounds the windows by those
// that were used. now is the owner's hybrid clock in Unix milliseconds. So the
// next run of the daemon may use the windows from then on.
func (t *Table) Stop(now int64) {
	if t.stopped == never {
		t.stopped = sat.AddInt(max(now, t.used, t.fence), 1)
		t.revision++
	}
}
