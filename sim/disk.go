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

// write is a write on its way to the disk of a process.
type write struct {
	daemon int
	member int32 // the process, in World.members
	// sync puts it on the disk, nil when it is there.
	sync func()
	// notify reports it to the process, ack after it is on the disk.
	ack    time.Duration
	notify func(mono time.Duration)
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
	w.write(maxSync, write{
		daemon: d.Index, member: d.member, ack: ackSync,
		sync:   func() { d.disk.record = data },
		notify: func(mono time.Duration) { d.serveAgent(w, d.agent.Stored(mono, nil)) },
	})
}

// writeLog appends to the log of an acceptor, which takes a while.
func (d *Daemon) writeLog(w *World, entries [][]byte) {
	d.logging = entries
	w.strict.out.Syncs++
	w.write(w.cfg.Strict.Sync, write{
		daemon: d.Index, member: d.member,
		sync: func() {
			d.disk.log, d.logging = append(d.disk.log, entries...), nil
			if len(d.disk.log) >= maxLog {
				d.disk.log = d.acceptor.Snapshot()
			}
		},
		notify: func(mono time.Duration) { d.serveAcceptor(w, d.acceptor.Stored(mono, d.time(w.now), nil)) },
	})
}

// write begins a write that takes up to a time.
func (w *World) write(longest time.Duration, x write) {
	w.events.push(w.now+w.faults.between(0, longest), evStored, w.writes.put(x))
}

// stored completes a write of a process that still runs, and then notifies the
// process.
func (w *World) stored(i int32) {
	x := w.writes.take(i)
	d := w.daemons[x.daemon]
	switch {
	case !d.Up || d.member != x.member:
	case x.sync != nil:
		x.sync()
		x.sync = nil
		w.events.push(w.now+x.ack, evStored, w.writes.put(x))
	case d.Paused:
		d.defers(evStored, w.writes.put(x))
	default:
		x.notify(d.Instant(w.now).Mono)
	}
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
