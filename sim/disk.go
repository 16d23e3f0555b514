package sim

import (
	"time"

	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/wire"
)

// disk is the storage of a machine, which outlives its processes: the record of
// its rights agent, and the log of its acceptor.
type disk struct {
	record []byte
	log    [][]byte
}

// write is a write on its way to a disk: of a record, or to the log.
type write struct {
	daemon  int
	member  int32 // the process, in World.members
	record  []byte
	entries [][]byte
	synced  bool // it is on the disk, and the process is about to know
}

// maxSync is the longest that a disk takes to sync a record, ackSync until the
// process knows.
const (
	maxSync = 20 * time.Millisecond
	ackSync = time.Millisecond
)

// writeRecord replaces the record of a rights agent, which takes a while.
func (d *Daemon) writeRecord(w *World, s *agent.Stored) {
	data := wire.EncodeStored(cluster, d.Name, s)
	at := w.now + w.faults.between(0, maxSync)
	w.events.push(at, evStored, w.writes.put(write{daemon: d.Index, member: d.member, record: data}))
}

// writeLog appends to the log of an acceptor, which takes a while.
func (d *Daemon) writeLog(w *World, entries [][]byte) {
	d.logging = entries
	w.strict.out.Syncs++
	at := w.now + w.faults.between(0, w.cfg.Strict.withDefaults().Sync)
	w.events.push(at, evStored, w.writes.put(write{daemon: d.Index, member: d.member, entries: entries}))
}

// stored completes a write of a process that still runs, and then notifies the
// process.
func (w *World) stored(i int32) {
	x := w.writes.take(i)
	d := w.daemons[x.daemon]
	if !d.Up || d.member != x.member {
		return
	}
	ack := time.Duration(0)
	switch at := d.Instant(w.now).Mono; {
	case !x.synced && x.entries != nil:
		d.disk.log, d.logging = append(d.disk.log, x.entries...), nil
		if len(d.disk.log) >= maxLog {
			d.disk.log = d.acceptor.Snapshot()
		}
	case !x.synced:
		d.disk.record = x.record
		ack = ackSync
	case d.Paused:
		d.defers(evStored, w.writes.put(x))
		return
	case x.entries != nil:
		d.serveAcceptor(w, d.acceptor.Stored(at, d.time(w.now), nil))
		return
	default:
		d.serveAgent(w, d.agent.Stored(at, nil))
		return
	}
	x.synced = true
	w.events.push(w.now+ack, evStored, w.writes.put(x))
}

// maxLog is the length at which a log is replaced by a snapshot.
const maxLog = 5_000

// tear ends the write to the log of a process that crashes: some of the entries
// arrive, the first ones.
func (d *Daemon) tear(w *World) {
	if n := len(d.logging); n > 0 {
		d.disk.log = append(d.disk.log, d.logging[:w.faults.rng.IntN(n+1)]...)
	}
	d.logging = nil
}
