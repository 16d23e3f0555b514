package sim

import (
	"time"

	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/wire"
)

// disk is what a machine has stored, whatever becomes of its processes: the
// record of its office, and the journal of its replica.
type disk struct {
	data    []byte
	journal [][]byte
}

// saving is a record on its way to a disk.
type saving struct {
	daemon int
	member int32 // the process, in World.members
	data   []byte
	synced bool // it is on the disk, and the process will hear of it
}

// maxSync is the longest that a disk takes to sync a record, heardSync until
// the process knows.
const (
	maxSync   = 20 * time.Millisecond
	heardSync = time.Millisecond
)

// save brings a record to the disk, which takes a while.
func (w *World) save(d *Daemon, s *agent.Stored) {
	data := wire.EncodeStored(cluster, d.Name, s)
	at := w.now + w.between(0, maxSync)
	w.events.push(at, evStored, w.savings.put(saving{d.Index, d.member, data, false}))
}

// stored lets a record reach the disk of a process that still runs, and then
// lets the process know.
func (w *World) stored(i int32) {
	s := w.savings.take(i)
	d := w.daemons[s.daemon]
	switch {
	case !d.Up || d.member != s.member:
		return
	case !s.synced:
		if d.disk.data == nil || !w.cfg.mutation.oneRecord {
			d.disk.data = s.data
		}
		s.synced = true
		w.events.push(w.now+heardSync, evStored, w.savings.put(s))
	case d.Paused:
		d.heard = append(d.heard, s)
	default:
		d.bureau.agent.Stored()
		w.perform(d)
	}
}
