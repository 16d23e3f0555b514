package swarm

import (
	"time"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// faults draws which kinds of faults a run has at all, how much of each, and
// when and where.
func (d *draw) faults() {
	likely := 0.3
	if d.tame || d.long {
		likely = 0.1
	}
	for _, kind := range sim.FaultKinds() {
		switch kind { // see copies, misuses, formats, situations and revocations
		case sim.CopiedControl, sim.WrongClock, sim.Upgrade, sim.Downgrade, sim.LostVoters, sim.Revoke:
			continue
		}
		if kind.Known() || !d.chance(likely) {
			continue
		}
		for range 1 + d.IntN(4) {
			d.cfg.Faults = append(d.cfg.Faults, d.fault(kind))
		}
	}
}

// rolling draws restarts of the daemons of a place, one after the other: they
// leave, or are killed.
func (d *draw) rolling() {
	c := &d.cfg
	if !d.chance(0.15) {
		return
	}
	f := sim.Fault{Kind: sim.Leave, At: d.time(0, c.Duration/2), For: d.wild(100*time.Millisecond, 4*time.Second)}
	if d.chance(0.2) {
		f.Kind = sim.Crash
	}
	f.Rename = d.chance(0.2)
	every := d.time(f.For/2, 2*f.For)
	for _, r := range c.Regions {
		for i := range r.Daemons {
			if f.From = []string{r.Daemon(i)}; f.At < c.Duration {
				c.Faults = append(c.Faults, f)
			}
			f.At += every
		}
		if d.chance(0.5) {
			return
		}
	}
}

// storageFaults draws power losses of a region or one of its daemons, some of
// them while their disks fail.
func (d *draw) storageFaults(region sim.Region, at time.Duration) {
	c := &d.cfg
	places := []string{region.Name}
	if d.chance(0.5) {
		places[0] = region.Daemon(d.IntN(region.Daemons))
	}
	for range d.between(1, 3) {
		loss := sim.Fault{Kind: sim.PowerLoss, At: at, From: places, For: d.wild(time.Millisecond, time.Second), Share: d.survives()}
		if d.chance(0.4) {
			f := d.fault([]sim.FaultKind{sim.WriteErrors, sim.SyncErrors, sim.FullDisk}[d.IntN(3)])
			f.At, f.From, f.For = at, places, d.wild(20*time.Millisecond, 5*time.Second)
			c.Faults = append(c.Faults, f)
			loss.At += d.time(0, f.For)
		}
		if loss.At < c.Duration {
			c.Faults = append(c.Faults, loss)
		}
		if at += d.wild(100*time.Millisecond, 3*time.Second); at >= c.Duration {
			return
		}
	}
}

// survives draws the share of unsynced data that survives a power loss.
func (d *draw) survives() rules.PPM {
	return rules.PPM([]int{0, 50, d.between(0, 100), 100}[d.IntN(4)]) * rules.Percent
}

// operators draws commands of operators in runs with rights that are long
// enough for others to hold the retired rights, and for the return.
func (d *draw) operators() {
	c := &d.cfg
	if !d.rights || d.long || d.large || !d.chance(0.15) {
		return
	}
	c.Duration = d.time(15*time.Second, 35*time.Second)
	for i := range c.Workloads {
		c.Workloads[i].Rate /= 2
	}
	for range d.between(1, 3) {
		kind := []sim.FaultKind{sim.RemoveDaemon, sim.RemoveRegion, sim.Leave, sim.NewRules}[d.IntN(4)]
		c.Faults = append(c.Faults, d.fault(kind))
	}
}

func (d *draw) fault(kind sim.FaultKind) sim.Fault {
	c := &d.cfg
	f := sim.Fault{Kind: kind, At: d.time(0, c.Duration-1), For: d.time(time.Millisecond, c.Duration)}
	if d.chance(0.1) {
		f.For = 0
	}
	f.From = d.somewhere()
	switch kind {
	case sim.Crash, sim.Amnesia, sim.PowerLoss:
		if f.Kind == sim.PowerLoss {
			f.Share = d.survives()
		}
		f.For = d.wild(time.Millisecond, c.Duration)
		f.Rename, f.Stay = d.chance(0.2), d.chance(0.1)
	case sim.Leave:
		f.For = d.wild(100*time.Millisecond, 6*time.Second)
		f.Rename, f.Stay = d.chance(0.2), d.chance(0.1)
	case sim.RemoveDaemon, sim.RemoveRegion, sim.LostVoters:
		f.At, f.For = d.time(0, c.Duration/2), d.time(0, c.Duration/2)
	case sim.Cut:
		f.To, f.OneWay = d.somewhere(), d.chance(0.5)
	case sim.Pause:
		f.For = d.wild(time.Millisecond, 3*time.Second)
	case sim.ClockStep:
		f.Offset = d.wild(time.Millisecond, 2*time.Hour)
		if d.chance(0.5) {
			f.Offset = -f.Offset
		}
	case sim.ClockDrift:
		f.PPM = int64(d.between(-20_000, 20_000))
	case sim.Degrade:
		f.To, f.OneWay = d.somewhere(), d.chance(0.5)
		f.Link = sim.Link{Delay: d.wild(time.Millisecond, 2*time.Second), Jitter: d.wild(time.Millisecond, time.Second)}
		d.spoil(&f.Link, 0.5)
	case sim.MissMembers:
		f.To = d.somewhere()
	case sim.NewRules:
		if d.chance(0.7) {
			f.From = nil
		}
		asks := d.asks
		f.Rules, f.Limits = d.rules()
		d.asks = asks
	case sim.Suspect:
		f.To = d.somewhere()
		if d.chance(0.7) {
			f.To = nil
		}
	case sim.Zombie:
		f.For = d.wild(20*time.Millisecond, 6*time.Second)
	case sim.WriteErrors, sim.SyncErrors:
		maybe(d, 0.5, &f.Share, func(_, most rules.PPM) rules.PPM { return rules.PPM(d.between(1, int(most))) }, 1, 100*rules.Percent)
	case sim.ProtocolErrors:
		f.Share = share(0.3 * d.Float64())
	case sim.WrongClock:
		f.Offset = d.wild(time.Second, time.Minute)
	case sim.SlowDisk:
		f.Delay = d.wild(time.Millisecond, 5*time.Second)
	case sim.BitFlip, sim.TruncatedFile:
		f.For = d.wild(time.Millisecond, c.Duration)
	case sim.FullDisk, sim.OldDisk, sim.KeepMembers, sim.LateMembers, sim.LayoutChange,
		sim.CopiedControl, sim.Revoke: // no further fields
	}
	return f
}

// somewhere draws one place, or now and then several.
func (d *draw) somewhere() []string {
	all := d.cfg.Places()
	places := []string{all[d.IntN(len(all))]}
	for d.chance(0.2) {
		places = append(places, all[d.IntN(len(all))])
	}
	return places
}

// outside leaves regions out of the core, now and then, and always fewer than
// half of them.
func (d *draw) outside() {
	n := len(d.cfg.Regions)
	if n < 3 || !d.chance(0.3) {
		return
	}
	for _, i := range d.Perm(n)[:d.between(1, (n-1)/2)] {
		o := sim.Outside{Region: d.cfg.Regions[i].Name, State: uint8(d.IntN(3))}
		d.cfg.Outside = append(d.cfg.Outside, o)
	}
}
