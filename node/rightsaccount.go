package node

import (
	"cmp"
	"slices"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/transfer"
)

// account is a key's rights account at this daemon: the rights used here, and
// the state of transfers.
type account struct {
	quota.Account
	grid      uint64 // of the limits it counts under
	transfers transfer.Key
}

// accountOf returns the account of a hit's key and makes it if there is none;
// nil for a key without a counter of its own. A new account starts from the
// replicated cells, which hold all use before by this run, and from the use by
// former runs.
func (n *Node) accountOf(h *Hit, at ref, now int64) *account {
	if at.where != inLive {
		if at.where != nowhere {
			return nil
		}
		// A new key is tracked from here on, though it may be refused.
		at = n.learn(h, now)
		n.keys.promised = max(0, n.keys.promised-1) // the room for it is taken
	}
	e := at.entry
	// An existing account holds all use, also use that the cells lack.
	if a := n.keys.sides.account(e.Extra); a != nil && a.grid == h.Limit.Grid() {
		return a
	}
	if e.Inherited() {
		return nil
	}
	a := newAccount(h, n.keys.former, n.replica.engine, n.gate.allotment(&n.rules, h.Rule, now), now, n.at.Mono.Milliseconds())
	n.keys.sides.of(e).account = a
	return a
}

// accountAt returns the account of a hit's counter, nil for none.
func (s *keys) accountAt(h *Hit, at ref) *account {
	if !at.exists() {
		return nil
	}
	if a := s.sides.account(at.entry.Extra); a != nil && a.grid == h.Limit.Grid() {
		return a
	}
	return nil
}

// newAccount makes the account of a hit's key from the replicated cells and the
// use by former runs.
func newAccount(h *Hit, f *former, eng *gossip.Engine, base quota.Allotment, now, mono int64) *account {
	l, a := h.Limit, &account{grid: h.Limit.Grid(), transfers: transfer.New(mono, 0, 0, 0)}
	if quota.Of(l).Windowed() {
		recallOwn(&a.Account, h, f, eng, now)
		// The bound keeps hits that came slowly from passing for a burst.
		burst := min(eng.Own(h.Key, a.Window).Net(), base.Amount/accountFrom)
		a.transfers = transfer.New(mono, a.Window, eng.Rights(h.Key, a.Window).Given, burst)
		return a
	}
	var own []quota.Known
	eng.OwnWindows(h.Key, func(window, end int64, hits uint64) {
		own = append(own, quota.Known{Window: window, End: end, Hits: hits})
	})
	slices.SortFunc(own, func(a, b quota.Known) int { return cmp.Compare(a.Window, b.Window) })
	for _, k := range own {
		a.Recall(l, base, now, k.Window, k.End, k.Hits)
	}
	return a
}

// spend counts a charged hit in the account of its key, if there is one. It
// does so also where the rights gate does not apply, since the gate may apply
// again before the window ends. An account made for another hit of the call is
// found again.
func (n *Node) spend(h *Hit, now int64, st *Status) {
	a := st.probed.account
	if a == nil {
		a = n.keys.accountAt(h, st.probed.ref)
	}
	if a == nil {
		return
	}
	if st.probed.bounded {
		st.probed.account = a
	}
	if h.Rule == nil || !quota.Of(h.Limit).Drains() {
		a.Spend(h.Limit, quota.Allotment{}, now, h.N) // windows and logs do not drain
		return
	}
	base, hits := n.gate.allotment(&n.rules, h.Rule, now), h.N
	if st.Over && !h.Limit.CarryDebt || st.probed.failed && !st.Over {
		hits = min(hits, a.Left(h.Limit, base, now)) // beyond that the bucket forgives
	}
	a.Spend(h.Limit, base, now, hits)
}
