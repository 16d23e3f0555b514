package daemon

import (
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/georld/rld/config"
	"github.com/georld/rld/control"
	"github.com/georld/rld/journal"
	"github.com/georld/rld/replica"
)

// openControl opens the control log of a daemon of a cluster. One without a
// folder follows it.
func (d *daemon) openControl() error {
	c := &d.Config
	if c.Region == "" {
		return nil
	}
	d.control = newControlLoop(control.Config{
		Name: c.Name, Region: c.Region, Durable: c.State.Dir != "", Witness: c.Witness(), Founders: c.Cluster.Founders,
		Language: replica.Language(c.Region, LimitsOptions(c)), Holders: true, Layouts: true,
		// A daemon that is cut off may use its rights for that long.
		Horizon:       max(leastLimitsHorizon, c.Rights.DaemonHorizon),
		DaemonHorizon: c.Rights.DaemonHorizon, MaxOffset: c.Clock.MaxOffset,
	}, d.storage(forControl), d.Log)
	return d.control.open()
}

// leastLimitsHorizon is the least time for which a change of limits that moves
// rights waits after all regions have acknowledged it.
const leastLimitsHorizon = 10 * time.Second

// firstRegions returns the regions of the settings, by name, with equal weights
// that sum to control.Whole.
func firstRegions(c *config.Config) []control.FirstRegion {
	names := c.RegionNames()
	out := make([]control.FirstRegion, len(names))
	for i, name := range names {
		out[i] = control.FirstRegion{Name: name, Weight: uint32(control.Whole / len(names))}
		if i < control.Whole%len(names) { // what rounding leaves
			out[i].Weight++
		}
	}
	return out
}

// open opens the journal and recovers the node from it. A disk that fails does
// not keep the daemon from serving: the loop tries again. The error is that of
// a journal that cannot be used: going on without it could begin a second
// cluster, or give one vote twice.
func (c *controlLoop) open() error {
	seed, err := control.NewSeed(cryptorand.Reader)
	if err != nil {
		return err
	}
	var random [32]byte
	cryptorand.Read(random[:]) // never fails
	n, disk, found, err := c.storage.OpenControl(c.config, seed, rand.New(rand.NewChaCha8(random)))
	if newer, ok := errors.AsType[*control.FormatError](err); ok {
		return fmt.Errorf("state.dir: %s: %w. It is of a later version: start that one again. To begin anew with this version, "+
			"run rld daemon reset with the folder; the daemon then has another id, and can take no part in a cluster whose record has format %d",
			found.File, err, newer.Format)
	}
	if _, damaged := errors.AsType[*journal.DamagedError](err); damaged {
		return fmt.Errorf("state.dir: %w. If another daemon has the record (rld cluster status there), or if no cluster has "+
			"begun, run rld daemon reset with the folder: the daemon then starts under a new id. Otherwise restore the disk. "+
			"A file of a newer rld needs that version", err)
	}
	if _, foreign := errors.AsType[*journal.ForeignError](err); foreign {
		return fmt.Errorf("state.dir: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if c.identity.Load() == nil { // until the journal is open
			c.identity.Store(&control.Identity{Key: seed.Key(0), Run: seed.Run()})
		}
		if c.fault == "" {
			c.log.Error("the control log cannot be opened: this daemon has no part in it, and tries again", "event", "control",
				"file", found.File, "limits_in_force", n != nil, "error", err)
		}
		if c.fault = err.Error(); c.unopened == nil {
			c.unopened = n
		}
		return nil
	}
	if found.Cut != nil {
		c.log.Info("the last record of the control log was cut short by the end of the process: no message depended on it",
			"file", found.File, "offset", found.Cut.Offset, "bytes", found.Cut.Bytes)
	}
	c.node, c.disk, c.unopened, c.fault = n, disk, nil, ""
	is := n.Identity()
	c.renewed = c.identity.Swap(&is) != nil
	if c.leaving {
		n.Leave()
	}
	return nil
}

// reopen tries to open the journal again when it is time.
func (c *controlLoop) reopen(e *Engine) {
	at := e.Now()
	c.mu.Lock()
	due := c.node == nil && at.Mono >= c.due
	if due {
		c.due = at.Mono + reopenEvery
	}
	c.mu.Unlock()
	if !due {
		return
	}
	if err := c.open(); err != nil { // it was unreadable until now
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fault = err.Error()
		c.log.Error("the control log cannot be opened: this daemon has no part in it", "event", "control", "error", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.node != nil {
		c.meet(at)
		c.log.Info("the control log is open", "event", "control")
	}
}

// close closes the journal. The loop has ended.
func (c *controlLoop) close() {
	if err := c.disk.Close(); err != nil {
		c.log.Warn("the journal of the control log could not be closed", "error", err)
	}
}
