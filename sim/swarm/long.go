package swarm

import (
	"cmp"
	"fmt"
	"math/bits"
	"time"

	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/load"
)

// longRuns is the part of the runs that are long. The others are bounds of
// them: how long they last, and the events that their
// daemons make while nothing happens.
const (
	longRuns            = 0.12
	longLeast, longMost = time.Minute, 72 * time.Hour
	idleEvents          = 60_000
	// maxSuspicion bounds faults that draw again and again.
	maxSuspicion = 30 * time.Second
)

// scaled draws a duration over orders of magnitude, as likely in one octave as
// in another.
func (d *draw) scaled(low, high time.Duration) time.Duration {
	octave := low << d.IntN(bits.Len64(uint64(high/low)))
	return d.time(octave, min(2*octave, high)).Round(time.Millisecond)
}

// stretch makes a run long: minutes to days with few events. Windows roll,
// cells, keys and horizons expire, clocks drift apart, and journals are
// compacted. Daemons send each other messages as seldom as settings allow, so
// that a day costs no more than some runs of seconds.
func (d *draw) stretch() {
	if !d.long {
		return
	}
	c := &d.cfg
	c.Shards = min(c.Shards, 2)
	g := &c.Node.Gossip
	g.Interval, g.WANInterval = d.scaled(250*time.Millisecond, 10*time.Second), d.scaled(500*time.Millisecond, time.Minute)
	maybe(d, 0.3, &g.Quiet, d.scaled, time.Second, time.Minute)
	maybe(d, 0.5, &g.ReadyWithin, d.scaled, time.Second, time.Minute)
	maybe(d, 0.5, &g.Grace, d.scaled, time.Second, 10*time.Minute)
	maybe(d, 0.5, &g.DigestEvery, d.scaled, 10*time.Second, time.Hour)
	least := time.Second
	if d.days {
		g.Interval, g.WANInterval = d.scaled(5*time.Second, 10*time.Second), d.scaled(30*time.Second, time.Minute)
		least = 5 * time.Second
	}
	if r := &c.Rights; d.rights {
		r.Period, r.Ahead = d.scaled(5*time.Second, 10*time.Minute), d.scaled(2*least, time.Minute)
		r.Interval, r.WANInterval = d.scaled(least, 10*time.Second), d.scaled(least, 10*time.Second)
		if r.DaemonHorizon != 0 {
			r.DaemonHorizon = d.scaled(10*time.Second, 24*time.Hour)
		}
	}
	c.Duration = d.scaled(longLeast, longMost)
	if d.days {
		c.Duration = d.time(24*time.Hour, longMost)
	}
	if d.shifting = d.rights && !d.days && len(c.Regions) > 1 && d.chance(0.5); d.shifting {
		c.Rights.Period = d.time(5*time.Second, 8*time.Second).Round(time.Second)
		c.Duration = c.Rights.Period * time.Duration(d.between(100, 150))
	}
	affordable := time.Duration(idleEvents / d.idleRate() * float64(time.Second))
	c.Duration = max(longLeast, min(c.Duration, affordable)).Round(time.Millisecond)
}

// idleRate returns about how many events a second an idle cluster makes.
func (d *draw) idleRate() float64 {
	c := &d.cfg
	daemons, local, across := 0.0, 0.0, 0.0
	for _, r := range c.Regions {
		n := float64(r.Daemons)
		local += n * (n - 1)
		across += 2 * daemons * n
		daemons += n
	}
	pairs := float64(len(c.Regions) * (len(c.Regions) - 1))
	every := func(n float64, interval time.Duration) float64 { return n / interval.Seconds() }
	g := &c.Node.Gossip
	// A message is sent in a wake that others share, and delivered.
	rate := every(daemons+local, g.Interval) + every(daemons+across, g.WANInterval)
	if r := &c.Rights; d.rights {
		rate += every(daemons+local, r.Interval) + every(2*pairs, r.WANInterval) + every(daemons, r.Ahead/4) + every(10*daemons, r.Period)
	}
	if d.strict { // layouts, leases and round trips
		rate += every(2*(local+across), 10*time.Second) + every(daemons, time.Second)
	}
	return rate
}

// longWindow draws the unit of a limit and its multiplier for a long run, in
// which its windows roll many times, or once.
func (d *draw) longWindow() (unit string, multiplier int) {
	if d.shifting {
		return "second", d.between(1, 3)
	}
	length := d.scaled(max(time.Second, d.cfg.Duration/200), max(2*time.Second, d.cfg.Duration))
	units := []struct {
		name   string
		length time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}}
	for _, u := range units {
		if length >= u.length {
			return u.name, min(int(length/u.length), 60)
		}
	}
	return "second", 1
}

// seldom lets the clients of a long run make few calls.
func (d *draw) seldom(l *load.Workload) {
	length := d.cfg.Duration
	calls := 1_500
	if d.strict {
		calls = 500 // leases have timers
	}
	l.Rate = float64(d.between(50, calls)) / length.Seconds()
	if d.shifting {
		l.Rate, l.Bursts, l.Pulse = float64(calls)/length.Seconds(), nil, nil
		l.Moving = &load.Moving{Share: 1}
	}
	switch {
	case l.Bursts != nil:
		b := &load.Bursts{On: d.scaled(time.Second, length/20), Off: d.scaled(time.Second, length/4)}
		l.Bursts, l.Rate = b, l.Rate*(b.On+b.Off).Seconds()/b.On.Seconds()
	case l.Pulse != nil:
		l.Pulse.Every = (length / time.Duration(d.between(2, 30))).Round(time.Millisecond)
		l.Pulse.Within = d.scaled(time.Millisecond, min(time.Minute, l.Pulse.Every))
	case l.Moving != nil:
		l.Moving.Every = (length / time.Duration(d.between(2, 30))).Round(time.Millisecond)
		if d.shifting {
			l.Moving.Every = 3 * d.cfg.Rights.Period
		}
	}
	if r := l.Retry; r != nil && r.Backoff > 0 {
		r.Backoff = d.scaled(time.Second, length/20)
	}
}

// lasting gives the faults of a long run their time: most are over after a
// small part of it. A clock that drifts does so slowly and for long.
func (d *draw) lasting() {
	if !d.long {
		return
	}
	c := &d.cfg
	if d.chance(0.7) { // beside others, so that their effects meet
		f := d.fault(sim.ClockDrift)
		f.At = d.time(0, c.Duration/2)
		c.Faults = append(c.Faults, f)
	}
	for i := range c.Faults {
		f := &c.Faults[i]
		switch f.Kind {
		case sim.Suspect:
			f.For = d.scaled(time.Second, maxSuspicion)
		case sim.ClockDrift:
			f.For = d.time(c.Duration/4, c.Duration)
			if d.chance(0.7) {
				f.PPM = int64(d.between(-500, 500))
			}
		default:
			if f.For == 0 || d.chance(0.7) {
				f.For = d.scaled(10*time.Millisecond, c.Duration/2)
			}
		}
	}
}

// longLimit draws the first fields of a limit of a long run.
func (d *draw) longLimit(f []string) int {
	unit, multiplier := d.longWindow()
	requests := d.between(1, 60)
	f[0], f[2], f[3] = "unit: "+unit, fmt.Sprintf("requests_per_unit: %d", requests), fmt.Sprintf("unit_multiplier: %d", multiplier)
	return requests
}

// liveness sets the time within which a cluster must serve clients again: a
// minute, plus the time that the settings add.
func (d *draw) liveness() {
	c := &d.cfg
	c.Liveness = time.Minute + 20*(c.Lag()+c.Network.Across.Jitter)
	if d.rights {
		// The longest pause of an agent before it sends a lost message again.
		c.Liveness += 32*max(4*c.Rights.Interval, 3*c.Rights.WANInterval) + 2*c.Rights.Ahead
	}
	if x := c.Control; x != nil { // elections, the next founding, and a change of the voters
		c.Liveness += 200*x.Heartbeat + x.Stable + x.ReplaceAfter + 10*x.Compare
	}
	if d.strict {
		c.Liveness += cmp.Or(c.Strict.Breaker.Open, breaker.DefaultOpen) + 20*c.Strict.Sync
	}
}
