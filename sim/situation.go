package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/internal/enum"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/wire"
)

// situation is something that a cluster with a control log must survive, or a
// command that it must carry out. It took effect in a run when the simulator
// observed it: a fault that was drawn need not have any effect.
type situation uint8

// The situations. Frames are those of the control log, voters its voters.
const (
	frameLost situation = iota
	frameDelayed
	frameRepeated
	framesReordered
	oneWayCut
	voterDied
	voterPaused
	voterReturned
	diskLost
	diskOld
	clonedThisRun
	clonedLastRun
	diskFull
	diskFailed
	diskTorn
	disklessDied
	sevenLeft
	twoOperators
	twoInits
	founderUnstored
	recoveredBehind
	recoveredTwice
	recoveredBothSides
	removalRefused
	revokedRefused
	layoutOverruled
	versionSkipped
	filesBackAndForth
	mixedVersions
	clockHoursOff
	rolled
	rolledRenamed
	surged
	evicted
	scaled
	inited
	regionAdded
	regionWeighed
	regionDrained
	regionRemoved
	regionResumed
	daemonRemoved
	daemonRevoked
	daemonUnrevoked
	limitsApplied
	limitsAdopted
	rolledBack
	overrideSet
	overrideUnset
	keyBlocked
	keyUnblocked
	keyReset
	emergencyTaken
	strictRecovered
	formatHeld
	laterFormat
	formatUnread
	formatRefused
	downgraded

	situationKinds = iota
)

// String returns the words of the table.
func (s situation) String() string {
	return enum.Name(s,
		"a frame lost", "a frame later than an election", "a frame twice", "frames out of order",
		"a cut in one direction", "a voter died", "a voter paused for an election", "a voter returned",
		"a disk lost", "an old disk noticed", "a clone of this run noticed", "a clone of the last run noticed",
		"a full disk refused the log", "a failing disk refused the log", "a torn write cut off",
		"all diskless daemons died at once", "7 of 10 left within 1 s",
		"two operators at once", "two inits at once", "a founder that never stored its entry",
		"recover on the one farthest behind", "recover twice", "recover on both sides",
		"remove of a living region refused", "a daemon revoked", "a layout overruled half way", "a version of the regions skipped", "files that go back and forth",
		"messages of another version", "a clock off by an hour",
		"pods rolled", "pods rolled with new names", "a surge of new pods", "all pods of a region evicted", "scaled 10, 3, 10, 3",
		"command: cluster init", "command: region add", "command: region weight", "command: region drain",
		"command: region remove", "command: region resume", "command: daemon remove", "command: daemon revoke", "command: daemon unrevoke",
		"command: limits apply", "command: limits adopt", "command: limits rollback", "command: limits set", "command: limits unset",
		"command: key block", "command: key unblock", "command: key reset", "command: an emergency override",
		"command: strict recover",
		"command: cluster format --hold", "the format of the record raised", "an older version that cannot read the record",
		"a disk of a later format refused", "a downgrade before the raise",
	)
}

const (
	// atOnce is the time within which daemons end or start together.
	atOnce = time.Second
	// manyPods and fewPods are the sizes of a region before and after it is
	// scaled down, and manyPods-fewPods how many leave at once.
	manyPods, fewPods = 10, 3
	// farOff is the least error of a clock that is off by hours.
	farOff = time.Hour
)

// situations counts the situations that took effect in a run with a control
// log.
type situations struct {
	counts [situationKinds]uint64
	pods   []pod        // by Daemon.Index
	scales []uint8      // by region: how far it has been scaled
	open   []order      // commands without a result
	askers []int        // daemons that were asked to begin the cluster
	unborn []control.ID // of ended processes without a record, until they start again
}

// pod is the state of a machine, over all its processes.
type pod struct {
	diskless bool
	newer    bool     // the latest process was of a later version
	names    []string // that its processes had
	id       control.ID
	voter    control.ID      // that its latest process was, zero for none
	record   *control.Record // that it had, of a process before, too
	copy     situation       // that it got by a copy of a disk, 0 for none
	paused   time.Duration
	born     time.Duration // the start of the present name, never for the first
	ended    time.Duration // of the latest process, never before
	left     time.Duration // when it began to leave, never before
	rolled   bool          // it left and started again, renamed with another name
	renamed  bool
	sets     []uint64 // hashes of the rule sets that it adopted
}

// order is a command that an operator gave a daemon.
type order struct {
	id     control.Number
	daemon int
	change control.Change
	living bool // it removes a region with live daemons
}

func newSituations(cfg *Config, daemons []*Daemon) situations {
	s := situations{pods: make([]pod, len(daemons)), scales: make([]uint8, len(cfg.Regions))}
	for i, d := range daemons {
		s.pods[i] = pod{born: never, ended: never, left: never, names: []string{d.Name}}
		s.pods[i].diskless = cfg.Control != nil && !cfg.controlOf(d).Durable
	}
	return s
}

// took counts a situation. There is none without a control log.
func (s *situations) took(w *World, x situation) {
	if w.cfg.Control != nil {
		s.counts[x]++
	}
}

// within reports whether a time is not over for long.
func within(now, at time.Duration) bool { return at != never && now-at <= atOnce }

// lost counts a frame that a link lost, that a cut kept, or that the receiver
// refused as one of a revoked daemon.
func (s *situations) lost(w *World, from, to int, frame []byte) {
	if bars(w.daemons[to], w.daemons[from]) {
		s.took(w, revokedRefused)
	}
	switch n := &w.network; {
	case !wire.IsControl(frame):
	case n.link(from, to).cutSince == notCut:
		s.took(w, frameLost)
	case n.link(to, from).cutSince == notCut:
		s.took(w, oneWayCut)
	}
}

// received counts the faults of a link, and the differences of its ends, that a
// frame met that arrives.
func (s *situations) received(w *World, f *flight) {
	if w.cfg.Control == nil || !wire.IsControl(f.frame) {
		return
	}
	from, to := w.daemons[f.from], w.daemons[f.to]
	if f.again {
		s.took(w, frameRepeated)
	}
	if w.now-f.sent > w.cfg.election() {
		s.took(w, frameDelayed)
	}
	l := w.network.link(int(f.from), int(f.to))
	if f.sent < l.arrived {
		s.took(w, framesReordered)
	}
	l.arrived = max(l.arrived, f.sent)
	if from.newer != to.newer && !f.mangled {
		s.took(w, mixedVersions)
	}
	off := to.clock.read(w.now) - w.base - int64(w.now)
	if max(off, -off) >= int64(farOff) {
		s.took(w, clockHoursOff)
	}
}

// election is the least time after which the voters elect another leader.
func (c *Config) election() time.Duration {
	return 10 * cmp.Or(c.Control.Heartbeat, 200*time.Millisecond)
}

// paused and resumed count pauses of voters.
func (s *situations) paused(w *World, d *Daemon) {
	if !d.Paused {
		s.pods[d.Index].paused = w.now
	}
}

func (s *situations) resumed(w *World, d *Daemon) {
	if votes(d) && w.now-s.pods[d.Index].paused > w.cfg.election() {
		s.took(w, voterPaused)
	}
}

// votes reports whether a process is a voter by its own record.
func votes(d *Daemon) bool {
	if d.control == nil || d.control.Record() == nil {
		return false
	}
	v := d.control.Record().VoterOf(d.control.ID())
	return v != nil && !v.Learner
}

// leaves counts those that leave at once.
func (s *situations) leaves(w *World, d *Daemon) {
	if w.cfg.Control == nil {
		return
	}
	s.pods[d.Index].left = w.now
	local := w.local[d.RegionIndex]
	s.reset(w, d)
	if !anyRecord(w) {
		return
	}
	n := s.countPods(local, func(p *pod) bool { return within(w.now, p.left) })
	if n == len(local) && n > 1 {
		s.took(w, evicted)
	}
	if n == manyPods-fewPods && len(local) >= manyPods {
		s.took(w, sevenLeft)
	}
}

// reset begins anew to wait for a roll of a region if another daemon of it is
// down, too.
func (s *situations) reset(w *World, d *Daemon) {
	local := w.local[d.RegionIndex]
	if !slices.ContainsFunc(local, func(o *Daemon) bool { return o != d && (!o.Up || o.leaving != nil) }) {
		return
	}
	for _, o := range local {
		s.pods[o.Index].rolled, s.pods[o.Index].renamed = false, false
	}
}

func (s *situations) countPods(all []*Daemon, is func(*pod) bool) (n int) {
	for _, d := range all {
		if is(&s.pods[d.Index]) {
			n++
		}
	}
	return n
}

// ends notes the end of a process, before its memory is gone.
func (s *situations) ends(w *World, d *Daemon) {
	if w.cfg.Control == nil {
		return
	}
	p := &s.pods[d.Index]
	p.ended, p.voter = w.now, control.ID{}
	if d.control != nil {
		p.id = d.control.ID()
	}
	if votes(d) {
		if p.voter = p.id; d.leaving == nil {
			s.took(w, voterDied)
		}
	}
	s.open = slices.DeleteFunc(s.open, func(o order) bool { return o.daemon == d.Index })
	if d.leaving == nil {
		s.reset(w, d)
	}
	if !p.diskless && d.control != nil && d.control.Record() == nil {
		s.unborn = append(s.unborn, p.id)
		s.unstored(w)
	}
	diskless := slices.DeleteFunc(slices.Clone(w.daemons), func(o *Daemon) bool { return !s.pods[o.Index].diskless })
	gone := func(o *Daemon) bool { return (o == d || !o.Up) && within(w.now, s.pods[o.Index].ended) }
	if p.diskless && len(diskless) > 1 && anyRecord(w) && !slices.ContainsFunc(diskless, func(o *Daemon) bool { return !gone(o) }) {
		s.took(w, disklessDied)
	}
}

// unstored counts founders that ended before they stored the founding.
func (s *situations) unstored(w *World) {
	for _, d := range w.daemons {
		if len(s.unborn) == 0 || d.control == nil || d.control.Record() == nil {
			continue
		}
		for _, g := range d.control.Record().Regions {
			s.unborn = slices.DeleteFunc(s.unborn, func(id control.ID) bool {
				founder := g.Generation.Index <= 1 && slices.Contains(g.Founders, id)
				if founder {
					s.took(w, founderUnstored)
				}
				return founder
			})
		}
	}
}

// starts notes the start of a process.
func (s *situations) starts(w *World, d *Daemon) {
	if w.cfg.Control == nil {
		return
	}
	p := &s.pods[d.Index]
	s.unborn = slices.DeleteFunc(s.unborn, func(id control.ID) bool { return id == p.id })
	fresh := !slices.Contains(p.names, d.Name)
	if p.born = never; fresh {
		p.names, p.born = append(p.names, d.Name), w.now
	}
	if d.control != nil && p.voter == d.control.ID() && votes(d) {
		s.took(w, voterReturned)
	}
	if p.newer && !d.newer && d.control != nil && d.control.Record() != nil {
		s.took(w, downgraded)
	}
	p.newer = d.newer
	if p.left != never {
		p.rolled, p.renamed, p.left = true, fresh, never
	}
	s.region(w, d)
}

// region counts rolls, surges and scaling of the region of a daemon that
// started.
func (s *situations) region(w *World, d *Daemon) {
	local := w.local[d.RegionIndex]
	born := s.countPods(local, func(p *pod) bool { return within(w.now, p.born) })
	older := slices.ContainsFunc(local, func(o *Daemon) bool { return o.Up && !within(w.now, s.pods[o.Index].born) })
	if within(w.now, s.pods[d.Index].born) && born > 1 && older {
		s.took(w, surged)
	}
	n := len(local)
	if n < 2 || s.countPods(local, func(p *pod) bool { return p.rolled }) < n {
		return
	}
	if s.took(w, rolled); s.countPods(local, func(p *pod) bool { return p.renamed }) == n {
		s.took(w, rolledRenamed)
	}
	for _, o := range local {
		s.pods[o.Index].rolled, s.pods[o.Index].renamed = false, false
	}
}

// scaled follows the number of daemons of a region.
func (s *situations) scaled(w *World, d *Daemon) {
	local := w.local[d.RegionIndex]
	if w.cfg.Control == nil || len(local) < manyPods {
		return
	}
	n := len(slices.DeleteFunc(slices.Clone(local), func(o *Daemon) bool { return !o.Up }))
	step := &s.scales[d.RegionIndex]
	switch {
	case *step == 0 && n >= manyPods, *step == 1 && n <= fewPods && anyRecord(w), *step == 2 && n >= manyPods:
		*step++
	case *step == 3 && n <= fewPods:
		*step = 0
		s.took(w, scaled)
	}
}

// opened counts the state in which a process found its disk.
func (s *situations) opened(w *World, d *Daemon, found *replica.Recovery) {
	p := &s.pods[d.Index]
	is := d.control.ID()
	if d.starts > 0 && found.Found == replica.Missing && slices.Contains(p.names, d.Name) && p.id != (control.ID{}) && p.id != is {
		s.took(w, diskLost)
	}
	if found.Cut != nil {
		s.took(w, diskTorn)
	}
}

// copied notes that a daemon gets a copy of the disk of another one, or of its
// own. live reports whether the process that it was copied from still runs.
func (s *situations) copied(d, of *Daemon, live bool) {
	kind := clonedLastRun
	switch {
	case d == of:
		kind = diskOld
	case live:
		kind = clonedThisRun
	}
	s.pods[d.Index].copy, s.pods[of.Index].copy = kind, kind
}

// happened counts the situations that an event of the control log proves.
func (s *situations) happened(w *World, d *Daemon, e *control.Event) {
	switch e.Kind {
	case control.Begun:
		s.took(w, inited)
		s.unstored(w)
	case control.OldDisk:
		if p := &s.pods[d.Index]; p.copy != 0 {
			s.took(w, p.copy)
			p.copy = 0
		}
	case control.StoreFailed:
		kind := diskFailed
		if d.disk.Faults.Full {
			kind = diskFull
		}
		s.took(w, kind)
	case control.Split:
		s.took(w, recoveredBothSides)
	case control.EmergencyTaken:
		s.took(w, emergencyTaken)
	case control.FormatRaised:
		s.took(w, laterFormat)
	case control.Abstains:
		if d.control.Status().Unread != 0 {
			s.took(w, formatUnread)
		}
	default:
	}
}

// adopted counts rule sets that a daemon takes in force again after another
// one.
func (s *situations) adopted(w *World, d *Daemon, hash uint64) {
	p := &s.pods[d.Index]
	n := len(p.sets)
	if n > 0 && p.sets[n-1] == hash {
		return
	}
	if slices.Contains(p.sets, hash) {
		s.took(w, filesBackAndForth)
	}
	p.sets = append(p.sets, hash)
}
