package agent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota/epoch"
)

// retireAhead is how far ahead of the clock the first window is that a retired
// participant does not use. Clocks differ by less.
const retireAhead = 10_000 // milliseconds

// RetireRegion divides the share of a region among the others, in proportion,
// by an epoch that does not wait for it. It is the operator's statement that no
// daemon of the region admits anything in a window that starts ten seconds from
// now or later: all are stopped, and start again only with a connection to
// another region, so that they learn of the epoch before they hold anything.
// Nothing checks this. A region that is only partitioned goes on using its
// share, and the bound does not hold meanwhile.
func (a *Agent) RetireRegion(name string) error {
	i, err := a.command(name)
	if err != nil {
		return fmt.Errorf("retire region %q: %w", name, err)
	}
	if i == a.own {
		return fmt.Errorf("retire region %q: it is the region of this daemon: use a daemon of another region", name)
	}
	top := newest(a.region)
	id := a.ids[i]
	if !top.Epoch.Has(id) {
		return fmt.Errorf("retire region %q: it is retired already, by epoch %s", name, top.Epoch.ID)
	}
	if len(top.Epoch.Members) == 1 {
		return fmt.Errorf("retire region %q: it is the only one left", name)
	}
	e := successor(&top)
	k := slices.IndexFunc(e.Members, func(m epoch.Member) bool { return m.ID == id })
	e.Members = slices.Delete(e.Members, k, k+1)
	for j, r := range e.Rules {
		e.Rules[j].Shares = slices.Delete(slices.Clone(r.Shares), k, k+1)
	}
	rescale(&e, epoch.Whole)
	e.Retired = retire(e.Retired, epoch.Retirement{ID: id, From: a.now + retireAhead})
	return a.propose(regionTable, e, fmt.Sprintf("region %q retired", name))
}

// ReturnRegion returns a share to a retired region: an equal one, taken from
// the others in proportion. The region holds it once all have acknowledged the
// epoch.
func (a *Agent) ReturnRegion(name string) error {
	i, err := a.command(name)
	if err != nil {
		return fmt.Errorf("return region %q: %w", name, err)
	}
	top := newest(a.region)
	id := a.ids[i]
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
	e := successor(&top)
	part := uint64(epoch.Whole / (len(e.Members) + 1))
	rescale(&e, epoch.Whole-part)
	k, _ := slices.BinarySearchFunc(e.Members, id, func(m epoch.Member, id uint64) int { return cmp.Compare(m.ID, id) })
	e.Members = slices.Insert(e.Members, k, epoch.Member{ID: id, Amount: part})
	for j, r := range e.Rules {
		e.Rules[j].Shares = slices.Insert(r.Shares, k, uint32(part))
	}
	return a.propose(regionTable, e, fmt.Sprintf("region %q returned", name))
}

// RetireDaemon divides the share of a dead daemon of this region among the
// others by an epoch that does not wait for it. It is needed where the region
// has too few daemons for a horizon. As for RetireRegion, it is the operator's
// statement that the daemon admits nothing from ten seconds from now on. The
// daemon may start again while a peer with the epoch is alive: it learns of the
// epoch before it holds anything.
func (a *Agent) RetireDaemon(name string) error {
	if err := a.commandable(); err != nil {
		return fmt.Errorf("retire daemon %q: %w", name, err)
	}
	if name == a.cfg.Name {
		return fmt.Errorf("retire daemon %q: it is this daemon: use another daemon of region %q",
			name, a.cfg.Region)
	}
	for _, l := range a.links {
		if l.local && l.peer.Name == name && l.alive(a.at) {
			return fmt.Errorf("retire daemon %q: it is alive: stop it first", name)
		}
	}
	top := newest(a.local)
	e := epoch.Epoch{Horizon: a.cfg.horizon()}
	if !top.Settled {
		e.Retired = slices.Clone(top.Epoch.Retired)
	}
	var left []uint64
	found := false
	for _, m := range top.Epoch.Members {
		if sameName(m.ID, memberID(name, 0)) {
			e.Retired = retire(e.Retired, epoch.Retirement{ID: m.ID, From: a.now + retireAhead})
			found = true
			continue
		}
		e.Members = append(e.Members, epoch.Member{ID: m.ID, Amount: 1})
		left = append(left, m.ID)
	}
	if !found {
		return fmt.Errorf("retire daemon %q: it holds nothing in region %q: it is retired, unknown, or "+
			"of another region: use a daemon of that region", name, a.cfg.Region)
	}
	if !a.members.remembers(left) {
		return fmt.Errorf("retire daemon %q: none of the others was in the settled epoch, so none knows "+
			"the promises of the region: retire the region and return it", name)
	}
	return a.propose(daemonTable, e, fmt.Sprintf("daemon %q retired", name))
}

// command returns the place of the region of a command, or an error if commands
// are not possible now.
func (a *Agent) command(region string) (int, error) {
	i := a.cfg.regionIndex(region)
	if i < 0 {
		names := make([]string, len(a.cfg.Regions))
		for j, r := range a.cfg.Regions {
			names[j] = r.Name
		}
		return 0, fmt.Errorf("unknown region: want one of %q", names)
	}
	return i, a.commandable()
}

func (a *Agent) commandable() error {
	if a.stamp == 0 || a.self == 0 || !a.ready {
		return errors.New("this daemon has not learned the epochs of its region yet: try again in a moment, " +
			"or use another daemon")
	}
	return nil
}

// retire adds a retirement. It keeps one for each participant.
func retire(all []epoch.Retirement, r epoch.Retirement) []epoch.Retirement {
	i, found := slices.BinarySearchFunc(all, r, func(a, b epoch.Retirement) int { return cmp.Compare(a.ID, b.ID) })
	if !found {
		return slices.Insert(all, i, r)
	}
	all[i].From = min(all[i].From, r.From)
	return all
}

// rescale scales the amounts and the shares of all rules of an epoch to a
// total. It replaces the slices of shares.
func rescale(e *epoch.Epoch, total uint64) {
	amounts := make([]uint64, len(e.Members))
	for i, m := range e.Members {
		amounts[i] = m.Amount
	}
	for i, amount := range scaled(amounts, total) {
		e.Members[i].Amount = amount
	}
	for i, r := range e.Rules {
		e.Rules[i].Shares = scaled(r.Shares, total)
	}
}

// scaled returns amounts in proportion that sum to total, or equal ones if all
// are 0. The first also gets the rest of the rounding. Amounts are at most
// 2^40.
func scaled[T uint32 | uint64](amounts []T, total uint64) []T {
	sum, out, left := uint64(0), make([]T, len(amounts)), total
	for _, a := range amounts {
		sum += uint64(a)
	}
	for i, a := range amounts {
		part := total / uint64(len(amounts))
		if sum > 0 {
			part = sat.MulDiv(total, uint64(a), sum)
		}
		out[i] = T(part)
		left -= part
	}
	out[0] += T(left)
	return out
}
