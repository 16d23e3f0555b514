package sim

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/georld/rld/disk/simdisk"
	"github.com/georld/rld/journal"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/sticky/quorum"
)

// The files of a machine.
const (
	rightsFile = iota
	journalFile
	controlFile
	diskFiles
)

var fileNames = [diskFiles]string{rightsFile: replica.RightsFile, journalFile: replica.JournalFile, controlFile: replica.ControlFile}

// write is a write on its way to the disk of a process.
type write struct {
	daemon int
	member int32 // the process, in World.members
	file   int
	// ack is the time from the end of the write until the process knows.
	ack  time.Duration
	done bool
	err  error // of a write that is done
	// notify reports it to the process.
	notify func(mono time.Duration, err error)
}

// maxSync is the longest that a disk takes to sync a record, ackSync until the
// process knows.
const (
	maxSync = 20 * time.Millisecond
	ackSync = time.Millisecond
)

// newDisk gives a machine an empty disk, which has the faults of the former.
func (d *Daemon) newDisk(w *World) {
	var present simdisk.Faults
	if d.disk != nil {
		present = d.disk.Faults
	}
	d.disk = simdisk.New(rand.New(rand.NewPCG(w.cfg.Seed, streamDisk+uint64(d.Index)<<32+uint64(d.disks))))
	d.disk.Faults, d.damaged, d.journalOf = present, false, ""
	d.disks++
}

// openStorage opens the folder of a process that starts. The operator states
// that a daemon never ran before when its name is new.
func (d *Daemon) openStorage(w *World) {
	d.mount = d.disk.Mount()
	ahead := 2 * w.cfg.maxOffset()
	d.Diskless = w.cfg.diskless(d)
	d.storage = replica.Storage{
		Folder: d.mount,
		Owner:  journal.Owner{Cluster: cluster, Name: d.Region + "/" + d.Name},
		Fence:  d.clock.read(w.now)/int64(time.Millisecond) + ahead.Milliseconds(),

		CompactBytes: compactBytes, Diskless: d.Diskless,
	}
	d.first, d.ran = d.ran != d.Name, d.Name
}

// compactBytes makes journals small enough to be rewritten in most runs.
const compactBytes = 32 << 10

// opened notes how a process found a file: damage is nil for an intact one. It
// checks that no end of a process or machine damages files.
func (w *World) opened(d *Daemon, file string, damage error) {
	w.storage.check(damage == nil || d.damaged, "at %v: %s finds %s damaged, and no fault did it: %v", w.now, d.Name, file, damage)
}

// writeRecord replaces the record of a rights agent, which takes a while on a
// disk.
func (d *Daemon) writeRecord(w *World, s *agent.Stored) {
	of := d.agent.Agent
	stored := func(mono time.Duration, err error) {
		switch f := &d.follows; {
		case d.agent == nil || d.agent.Agent != of: // it has ended
		case err == nil && !holdsRights(d, s.Number): // until the statement is on disk, too
			f.stored, f.number = of, s.Number
		default:
			d.serveAgent(w, d.agent.Stored(mono, err))
		}
	}
	if d.storage.Diskless {
		stored(d.Instant(w.now).Mono, d.storage.StoreRights(s))
		return
	}
	d.write(w, maxSync, rightsFile, ackSync, func() error { return d.storage.StoreRights(s) }, stored)
}

// writeLog appends to the log of an acceptor, which takes a while on a disk.
func (d *Daemon) writeLog(w *World, entries []quorum.Entry) {
	if d.storage.Diskless {
		d.serveAcceptor(w, d.acceptor.Stored(d.Instant(w.now).Mono, d.time(w.now), nil))
		return
	}
	w.strict.out.Syncs++
	d.write(w, w.cfg.Strict.Sync, journalFile, 0,
		func() error { return d.log.Append(entries, d.acceptor) },
		func(mono time.Duration, err error) {
			if d.logFailed = err != nil; !d.logFailed {
				d.logDisk = d.disks
			}
			d.serveAcceptor(w, d.acceptor.Stored(mono, d.time(w.now), err))
			followLayouts(d, w)
			turnLayouts(w)
			d.compact(w)
		})
}

// compact rewrites the log of an acceptor that has nothing to store, if most of
// it is out of date. The acceptor takes no turn meanwhile.
func (d *Daemon) compact(w *World) {
	if d.writing[journalFile] != nil || d.logFailed || !d.log.ShouldCompact() {
		return
	}
	d.compacting = true
	lost := false
	d.write(w, w.cfg.Strict.Sync, journalFile, 0,
		func() (err error) {
			lost, err = d.log.Compact(d.acceptor)
			return err
		},
		func(_ time.Duration, err error) {
			if d.compacting = false; lost {
				d.logFailed = true
				d.acceptor.Acceptor.Failed(err)
			}
			d.turnAcceptor(w)
		})
}

// write begins a write of a process to a file, which takes up to a time.
func (d *Daemon) write(
	w *World, longest time.Duration, file int, ack time.Duration, run func() error, notify func(time.Duration, error),
) {
	d.writing[file] = run
	d.saw(w, ofBegun+d.writes(file))
	if w.traced(d) {
		w.lines.add(d, "store", "%s begins", fileNames[file])
	}
	x := write{daemon: d.Index, member: d.member, file: file, ack: ack, notify: notify}
	w.events.push(w.now+w.faults.between(0, longest+d.slow), evStored, w.writes.put(x))
}

// stored completes a write of a process that still runs, and then notifies the
// process.
func (w *World) stored(i int32) {
	x := w.writes.take(i)
	d := w.daemons[x.daemon]
	switch {
	case !d.Up || d.member != x.member:
	case !x.done:
		x.done, x.err = true, d.writing[x.file]()
		d.writing[x.file] = written
		if w.acting = d; w.traced(d) {
			w.lines.add(d, "store", "%s ends, error=%v", fileNames[x.file], x.err)
		}
		d.saw(w, ofStored+d.writes(x.file)) // a fault of this instant comes first
		w.events.push(w.now+x.ack, evStored, w.writes.put(x))
	case d.Paused:
		d.defers(evStored, w.writes.put(x))
	default:
		d.writing[x.file], w.acting = nil, d
		x.notify(d.Instant(w.now).Mono, x.err)
	}
}

// writes returns the word for the kind of write to a file.
func (d *Daemon) writes(file int) string {
	if file == journalFile && d.compacting {
		file = diskFiles
	}
	return fileWords[file]
}

// written stands for a write that is done, and of which the process does not
// know yet: a crash does not repeat it.
func written() error { return nil }

// maxTorn bounds the calls of a write that a crash lets through.
const maxTorn = 8

// tear ends the process of a machine: a write that is on its way goes as far as
// some call.
func (d *Daemon) tear(w *World) {
	for i, run := range d.writing {
		if run != nil {
			d.mount.EndAfter(w.faults.rng.IntN(maxTorn))
			_ = run() // nobody is there to get the error
		}
		d.writing[i] = nil
	}
	d.mount.End()
	d.log, d.controlLog, d.compacting, d.rewriting, d.logFailed = nil, nil, false, false, false
}

// errDisk is the error of writes and syncs that fail.
var errDisk = errors.New("input/output error")

// supervise is the time after which a process that could not start is started
// again.
const supervise = time.Second

// setDisk gives the disk of a daemon the faults in force.
func (a *faults) setDisk(w *World, _ *Fault, d *Daemon) {
	d.disk.Faults, d.slow = simdisk.Faults{}, 0
	if w.healed {
		return
	}
	for _, i := range a.active {
		f := &a.all[i]
		if !d.in(f.From) {
			continue
		}
		switch f.Kind {
		case WriteErrors:
			d.disk.Faults.Write, d.disk.Faults.PPM = errDisk, int(f.Share)
		case SyncErrors:
			d.disk.Faults.Sync, d.disk.Faults.PPM = errDisk, int(f.Share)
		case FullDisk:
			d.disk.Faults.Full = true
		case SlowDisk:
			d.slow = max(d.slow, f.Delay)
		}
	}
}

// flipBit is a crash that damages a file.
func (a *faults) flipBit(w *World, f *Fault, d *Daemon) {
	a.crash(w, f, d)
	d.spoil(a, d.disk.FlipBit)
}

// truncate is a crash that cuts a file.
func (a *faults) truncate(w *World, f *Fault, d *Daemon) {
	a.crash(w, f, d)
	d.spoil(a, d.disk.Truncate)
}

// spoil changes one of the files of a daemon.
func (d *Daemon) spoil(a *faults, change func(name string) bool) {
	files := fileNames
	a.rng.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	for _, name := range files {
		if change(name) {
			d.damaged = true
			return
		}
	}
}

// copyDisk takes a copy of a disk, and restoreDisk puts it back under a new
// process.
func (a *faults) copyDisk(_ *World, _ *Fault, d *Daemon) { d.backup = backup{disk: d.disk.Clone()} }

func (a *faults) restoreDisk(w *World, _ *Fault, d *Daemon) {
	if d.backup.disk == nil {
		return
	}
	w.crash(d)
	w.met.copied(d, d, false)
	d.backup.disk.Faults = d.disk.Faults
	d.disk, d.backup, d.damaged = d.backup.disk, backup{}, true
	w.events.push(w.now+a.between(0, w.cfg.Members.Spread), evStart, int32(d.Index))
}

// copyControl copies the disk of a daemon, for those that are to be its clones.
func (a *faults) copyControl(w *World, f *Fault, _ int) {
	for _, d := range w.daemons {
		of := d
		if len(f.To) > 0 {
			i := slices.IndexFunc(w.daemons, func(o *Daemon) bool { return o != d && o.in(f.From) })
			if !d.in(f.To) || i < 0 {
				continue
			}
			of = w.daemons[i]
			of.copied = true
		} else if !d.in(f.From) {
			continue
		}
		d.backup = backup{of.disk.Clone(), cmp.Or(of.journalOf, of.Region+"/"+of.Name), of.damaged, of.Index, of.starts, of.alone}
	}
}

// putControl starts processes with the control logs that were copied for them,
// but not where no daemon could notice it: the only voter does not know which
// entries its log lost, and no daemon receives messages of two that refuse each
// other.
func (a *faults) putControl(w *World, f *Fault, _ int) {
	for _, d := range w.daemons {
		b := d.backup
		if b.of == "" || len(f.To) == 0 && !d.in(f.From) || !d.in(f.To) {
			continue
		}
		of := w.daemons[b.daemon]
		if b.alone && of == d || d.alone || d.refuses(of) {
			d.backup = backup{}
			continue
		}
		w.crash(d)
		d.disk.Copy(b.disk, replica.ControlFile)
		w.met.copied(d, of, of.Up && of.starts == b.starts)
		d.stale, d.journalOf, d.damaged, d.backup = true, b.of, d.damaged || b.damaged, backup{}
		w.events.push(w.now+a.between(0, w.cfg.Members.Spread), evStart, int32(d.Index))
	}
}

// backup is a copy of a disk. of is the daemon whose control log it has, for
// CopiedControl. damaged reports whether a fault damaged one of its files, and
// alone that it was the only voter then.
type backup struct {
	disk    *simdisk.Disk
	of      string
	damaged bool
	daemon  int // index
	starts  int // of its processes, when the copy was made
	alone   bool
}

// identity is what a machine starts processes with.
type identity struct {
	name    string
	disk    *simdisk.Disk
	damaged bool
}

// clone starts processes as daemons of their region, with copies of their
// disks, but for those that refuse the daemon: see putControl. unclone starts
// them with what was theirs.
func (a *faults) clone(w *World, f *Fault, _ int) {
	for _, d := range w.daemons {
		i := slices.IndexFunc(w.local[d.RegionIndex], func(o *Daemon) bool { return o != d && o.in(f.From) })
		if i < 0 || !d.in(f.To) || d.own != nil || d.refuses(w.local[d.RegionIndex][i]) {
			continue
		}
		of := w.local[d.RegionIndex][i]
		of.copied = true
		w.met.copied(d, of, of.Up)
		copied := of.disk.Clone()
		copied.Remove(replica.AccountsFile) // before the log knows, two processes would take them up
		a.startAs(w, f, d, identity{of.Name, copied, of.damaged})
	}
}

func (a *faults) unclone(w *World, f *Fault, _ int) {
	for _, d := range w.daemons {
		if own := d.own; d.in(f.To) && own != nil {
			a.startAs(w, f, d, *own)
			d.own = nil
		}
	}
}

func (a *faults) startAs(w *World, f *Fault, d *Daemon, as identity) {
	a.crash(w, f, d)
	d.own = &identity{d.Name, d.disk, d.damaged}
	d.stale = true
	as.disk.Faults = d.disk.Faults
	d.Name, d.ran, d.disk, d.damaged, d.logDisk = as.name, as.name, as.disk, as.damaged, 0
	a.restart(w, f, d)
}

// cannotStart is what becomes of a process that cannot read or write its disk:
// it is started again later. Where the disk does not fail, the operator first
// removes the file that it refused.
func (d *Daemon) cannotStart(w *World, file string, err error) error {
	d.mount.End()
	d.agent, d.acceptor, d.log, d.control, d.controlLog = nil, nil, nil, nil, nil
	if d.failing = d.disk.Faults; d.failing == (simdisk.Faults{}) {
		if d.refused == file {
			return err // it is refused although the file was removed
		}
		w.opened(d, file, err)
		d.refused, d.logDisk = file, 0
		d.disk.Remove(file)
	}
	w.events.push(w.now+supervise, evStart, int32(d.Index))
	return nil
}

// compactControl rewrites the log of a process that has nothing to store, if
// most of it is out of date.
func compactControl(d *Daemon, w *World) {
	if d.writing[controlFile] != nil || !d.controlLog.ShouldCompact() {
		return
	}
	d.rewriting = true
	d.write(w, maxSync, controlFile, 0,
		func() error { return d.controlLog.Rewrite(d.control.Snapshot()) },
		func(time.Duration, error) {
			d.rewriting = false
			d.turnControl(w)
		})
}
