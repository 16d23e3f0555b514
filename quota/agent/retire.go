package agent

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/georld/rld/quota/epoch"
)

// retireAhead is how far ahead of the clock the first label is that a retired
// participant is said not to use: the clocks of the others differ by less.
const retireAhead = 10_000 // milliseconds

// RetireRegion shares what a region has among the others, in proportion, by an
// epoch that does not wait for it. It is the operator's word that no daemon of
// the region admits anything under a label that starts ten seconds from now or
// later: all are stopped, and start again only where they hear another region,
// from which they learn of this before they hold anything.
// Nothing checks it: a region that is only cut off goes on with its share, and
// the bound does not hold while it does.
func (o *Agent) RetireRegion(name string) error {
	i, err := o.command(name)
	if err != nil {
		return fmt.Errorf("retire region %q: %w", name, err)
	}
	if i == o.own {
		return fmt.Errorf("retire region %q: it is the region of this daemon: say it to one of another", name)
	}
	top := newest(o.region)
	id := o.ids[i]
	if !top.Epoch.Has(id) {
		return fmt.Errorf("retire region %q: it is retired already, by epoch %s", name, top.Epoch.ID)
	}
	if len(top.Epoch.Members) == 1 {
		return fmt.Errorf("retire region %q: it is the only one left", name)
	}
	e := o.successor(&top)
	k := slices.IndexFunc(e.Members, func(m epoch.Member) bool { return m.ID == id })
	e.Members = slices.Delete(e.Members, k, k+1)
	share := make([]uint64, len(e.Members))
	for j, m := range e.Members {
		share[j] = m.Amount
	}
	for j, a := range scaled(share, epoch.Whole) {
		e.Members[j].Amount = a
	}
	for j, row := range e.Rules {
		e.Rules[j].Shares = reshared(slices.Delete(slices.Clone(row.Shares), k, k+1), epoch.Whole)
	}
	e.Retired = retire(e.Retired, epoch.Retirement{ID: id, From: o.now + retireAhead})
	return o.propose(0, e, fmt.Sprintf("region %q retired", name))
}

// ReturnRegion gives a retired region its part again: that of one among equals,
// which the others give up in proportion. It holds it once all have
// acknowledged that.
func (o *Agent) ReturnRegion(name string) error {
	i, err := o.command(name)
	if err != nil {
		return fmt.Errorf("return region %q: %w", name, err)
	}
	top := newest(o.region)
	id := o.ids[i]
	if top.Epoch.Has(id) {
		return fmt.Errorf("return region %q: it is not retired", name)
	}
	if !top.Settled {
		return fmt.Errorf("return region %q: epoch %s is not settled yet: try again when it is",
			name, top.Epoch.ID)
	}
	if len(top.Epoch.Members) == epoch.MaxMembers {
		return fmt.Errorf("return region %q: there are %d already", name, epoch.MaxMembers)
	}
	e := o.successor(&top)
	part := uint64(epoch.Whole / (len(e.Members) + 1))
	share := make([]uint64, len(e.Members))
	for j, m := range e.Members {
		share[j] = m.Amount
	}
	for j, a := range scaled(share, epoch.Whole-part) {
		e.Members[j].Amount = a
	}
	k := slices.IndexFunc(e.Members, func(m epoch.Member) bool { return m.ID > id })
	if k < 0 {
		k = len(e.Members)
	}
	e.Members = slices.Insert(e.Members, k, epoch.Member{ID: id, Amount: part})
	for j, row := range e.Rules {
		e.Rules[j].Shares = slices.Insert(reshared(row.Shares, epoch.Whole-part), k, uint32(part))
	}
	e.Retired = slices.DeleteFunc(e.Retired, func(r epoch.Retirement) bool { return r.ID == id })
	return o.propose(0, e, fmt.Sprintf("region %q returned", name))
}

// RetireDaemon shares what a dead daemon of this region has among the others
// by an epoch that does not wait for it: that is needed where the region has
// too few daemons for a horizon. As for RetireRegion, it is the operator's word
// that the daemon admits nothing from ten seconds from now on; it may start
// again while one that knows of this lives, from which it hears before it
// holds anything.
func (o *Agent) RetireDaemon(name string) error {
	if err := o.commandable(); err != nil {
		return fmt.Errorf("retire daemon %q: %w", name, err)
	}
	if name == o.cfg.Name {
		return fmt.Errorf("retire daemon %q: it is this daemon: say it to another of region %q",
			name, o.cfg.Region)
	}
	for _, l := range o.links {
		if l.local && l.peer.Name == name && o.hears(l) {
			return fmt.Errorf("retire daemon %q: it lives: stop it first", name)
		}
	}
	top := newest(o.local)
	e := epoch.Epoch{Horizon: o.cfg.horizon()}
	if !top.Settled {
		e.Retired = slices.Clone(top.Epoch.Retired)
	}
	var left []uint64
	found := false
	for _, m := range top.Epoch.Members {
		if sameName(m.ID, memberID(name, 0)) {
			e.Retired = retire(e.Retired, epoch.Retirement{ID: m.ID, From: o.now + retireAhead})
			found = true
			continue
		}
		e.Members = append(e.Members, epoch.Member{ID: m.ID, Amount: 1})
		left = append(left, m.ID)
	}
	if !found {
		return fmt.Errorf("retire daemon %q: it holds nothing in region %q: it is retired, unknown, or "+
			"of another region, where it is to be said", name, o.cfg.Region)
	}
	if !o.remembers(left) {
		return fmt.Errorf("retire daemon %q: none of those left was in the settled epoch, so none knows "+
			"what the region promised: retire the region and return it", name)
	}
	return o.propose(1, e, fmt.Sprintf("daemon %q retired", name))
}

// command returns the place of the region a command is about, or why it cannot
// be given now.
func (o *Agent) command(region string) (int, error) {
	i := o.regionIndex(region)
	if i < 0 {
		names := make([]string, len(o.cfg.Regions))
		for j, r := range o.cfg.Regions {
			names[j] = r.Name
		}
		return 0, fmt.Errorf("unknown region: want one of %q", names)
	}
	return i, o.commandable()
}

func (o *Agent) commandable() error {
	if o.stamp == 0 || o.self == 0 || !o.ready {
		return errors.New("this daemon has not learned yet what the others know: try again in a moment, " +
			"or at another")
	}
	return nil
}

// retire adds a retirement, each participant once.
func retire(all []epoch.Retirement, r epoch.Retirement) []epoch.Retirement {
	for i := range all {
		if all[i].ID == r.ID {
			all[i].From = min(all[i].From, r.From)
			return all
		}
	}
	all = append(all, r)
	slices.SortFunc(all, func(a, b epoch.Retirement) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return all
}

// scaled returns amounts in proportion that sum to total, equal ones where all
// are 0. What rounding leaves goes to the first. Shares are at most 2^32.
func scaled(amounts []uint64, total uint64) []uint64 {
	sum, out, left := uint64(0), make([]uint64, len(amounts)), total
	for _, a := range amounts {
		sum += a
	}
	for i, a := range amounts {
		if sum == 0 {
			out[i] = total / uint64(len(amounts))
		} else {
			hi, lo := bits.Mul64(total, a)
			out[i], _ = bits.Div64(hi, lo, sum) // a <= sum, so it fits
		}
		left -= out[i]
	}
	out[0] += left
	return out
}

// reshared is scaled for a row.
func reshared(amounts []uint32, total uint64) []uint32 {
	wide := make([]uint64, len(amounts))
	for i, a := range amounts {
		wide[i] = uint64(a)
	}
	out := make([]uint32, len(amounts))
	for i, a := range scaled(wide, total) {
		out[i] = uint32(a)
	}
	return out
}
