package sim

import (
	"github.com/georld/rld/node"
	epochs "github.com/georld/rld/quota/epoch"
)

// tappedAllotments answers as a daemon's rights agent does, out of the total
// that the policy gives out, and reports the answers to the auditors.
type tappedAllotments struct {
	node.Allotments
	world   *World
	daemon  *Daemon
	process int // in World.members
}

// Allotment implements node.Allotments.
func (t *tappedAllotments) Allotment(rule, total uint64, x, carry int64, regional bool) (uint64, epochs.Reason) {
	total = t.world.portion(rule, total)
	amount, why := t.Allotments.Allotment(rule, total, x, carry, regional)
	region := -1
	if regional {
		region = t.daemon.RegionIndex
	}
	t.world.auditors.allotted(&Allotted{
		Daemon: t.daemon, Process: t.process, Rule: rule, Window: x, Region: region, Total: total, Amount: amount,
	})
	return amount, why
}

// PartOf implements node.Allotments.
func (t *tappedAllotments) PartOf(peer string, rule, total uint64, x, carry int64, regional bool) uint64 {
	return t.Allotments.PartOf(peer, rule, t.world.portion(rule, total), x, carry, regional)
}

// RegionPart implements node.Allotments.
func (t *tappedAllotments) RegionPart(region string, rule, total uint64, x, carry int64) uint64 {
	return t.Allotments.RegionPart(region, rule, t.world.portion(rule, total), x, carry)
}

// RegionAllotment implements node.Allotments.
func (t *tappedAllotments) RegionAllotment(rule, total uint64, x, carry int64) (uint64, epochs.Reason) {
	total = t.world.portion(rule, total)
	amount, why := t.Allotments.RegionAllotment(rule, total, x, carry)
	t.world.auditors.allotted(&Allotted{
		Daemon: t.daemon, Process: t.process, Rule: rule, Window: x, Region: t.daemon.RegionIndex,
		ByRegion: true, Total: total, Amount: amount,
	})
	return amount, why
}

// portion returns the part of a total that the policy of the run gives out.
func (w *World) portion(rule, total uint64) uint64 {
	if !w.cfg.Policy.Plain() {
		return total
	}
	for i := w.newest(); i >= 0; i-- {
		if r := w.sets[i].set.FindShared(rule); r != nil {
			return w.cfg.Policy.portion(total, r.Limit)
		}
	}
	return total
}
