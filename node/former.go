package node

import (
	"cmp"
	"math"
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/keytable"
	"github.com/georld/rld/rules"
)

// MaxAccounts bounds the accounts that the nodes of a process hand on: about
// 40 MB on disk, and 100 MB in memory until their windows are over.
const MaxAccounts = 1 << 20

// Accounts is the use of the rights of windows by all runs of a daemon so far,
// as a stopped run hands it on to the next one. A key that is not among Keys
// has used nothing under the rules that are among Rules, in the windows that
// are not over at AsOf.
type Accounts struct {
	AsOf  int64 // Unix milliseconds
	Keys  []KeyAccount
	Rules []KnownRule
}

// KeyAccount is the use of the rights to one key: that of a window and of the
// one before it, see quota.Account.
type KeyAccount struct {
	Key crdt.Key
	// Window is in Unix milliseconds, and so is Ends, from which on the use
	// matters no more.
	Window, Ends                   int64
	Used, Back, PrevUsed, PrevBack uint64
}

// all is the Used of a key whose use is not known: it counts as all its rights
// in the windows that begin before Ends.
const all = math.MaxUint64

// KnownRule is a rule the use of whose keys is known in the windows whose
// history begins after After (Unix milliseconds).
type KnownRule struct {
	Name     uint64 // see rules.Rule.Shared
	Weighted bool   // known with the window before, see quota.Fold.Weighted
	After    int64
}

// former is the use of rights by the former runs of this daemon. It is constant
// but for the keys whose windows are over.
type former struct {
	asOf, until int64
	rules       []KnownRule // by name
	keys        map[crdt.Key]KeyAccount
	resumed     bool     // see Resume
	ending      []ending // descending by ends
}

// ending is when a key's account may be dropped.
type ending struct {
	ends int64
	key  crdt.Key
}

// TakeUp adds the use of rights by former runs, before the first call. until is
// the last window that the former runs may have used, in Unix milliseconds. The
// accounts may be those of other shards, too; the caller keeps them. What the
// former runs received is not used before Resume.
func (n *Node) TakeUp(a *Accounts, until int64) {
	f := &former{asOf: a.AsOf, until: until, rules: slices.Clone(a.Rules), keys: map[crdt.Key]KeyAccount{}}
	slices.SortFunc(f.rules, func(a, b KnownRule) int { return cmp.Compare(a.Name, b.Name) })
	for i := range a.Keys {
		if k := &a.Keys[i]; n.keys.owns(k.Key) {
			f.keys[k.Key] = *k
			f.ending = append(f.ending, ending{k.Ends, k.Key})
		}
	}
	slices.SortFunc(f.ending, func(a, b ending) int { return cmp.Compare(b.ends, a.ends) })
	n.keys.former, n.gate.former = f, f
	clear(n.gate.cached)
}

// Resume lets the node use the rights of former runs: what they received, and
// Allotments.Former where their use is known. Call it once it is certain that
// this run goes on under their id. It does nothing without TakeUp.
func (n *Node) Resume() {
	f := n.keys.former
	if f == nil || f.resumed {
		return
	}
	f.resumed = true
	clear(n.gate.cached)
	for k, was := range f.keys {
		e := n.keys.live.Find(k)
		if e == nil {
			continue
		}
		a := n.keys.sides.account(e.Extra)
		if a == nil || e.Rule < 0 {
			continue
		}
		if l := n.rules.set.Rules()[e.Rule].Limit; l != nil && quota.Of(l).Windowed() && a.grid == l.Grid() {
			a.Left(l, quota.Allotment{}, n.now) // moves it to the window of now
			a.Return(l, was.Window-l.Window(), was.PrevBack)
			a.Return(l, was.Window, was.Back)
		}
	}
}

// after returns the instant after which the history of a rule's windows begins
// where the use of its keys is known. It returns ok false for a rule whose use
// is known in no window of a former run.
func (f *former) after(name uint64, weighted bool) (after int64, ok bool) {
	i, ok := slices.BinarySearchFunc(f.rules, name, func(r KnownRule, name uint64) int { return cmp.Compare(r.Name, name) })
	if !ok || weighted && !f.rules[i].Weighted {
		return 0, false
	}
	return f.rules[i].After, true
}

// covers reports whether the use of a rule's keys is known in the window of x,
// and in those that count in it.
func (f *former) covers(r *rules.Rule, x, carry int64) bool {
	fold := quota.Of(r.Limit)
	if f == nil || !f.resumed || !fold.Windowed() || sat.AddInt(x, fold.Window()) <= f.asOf {
		return false
	}
	after, ok := f.after(r.Shared(), fold.Weighted())
	return ok && x-carry > after
}

// account returns the use of a key by former runs.
func (f *former) account(k crdt.Key) (a KeyAccount, ok bool) {
	if f == nil || len(f.keys) == 0 {
		return KeyAccount{}, false
	}
	if a, ok = f.keys[k]; !f.resumed {
		a.Back, a.PrevBack = 0, 0
	}
	return a, ok
}

// recall adds the use of a key by former runs to an account of the window of
// now. It does so also where the use of a rule is not known: the account stays
// when another algorithm takes effect, for which it is.
//
// The clock may have stepped back while the daemon was down. So the account
// goes to the latest window that was used, and has no rights before it.
func (f *former) recall(a *quota.Account, k crdt.Key, l *rules.Limit, now int64) {
	was, ok := f.account(k)
	switch {
	case !ok:
	case was.Used == all:
		if a.Window < was.Ends {
			a.Left(l, quota.Allotment{}, was.Ends-1)
			a.Recall(l, quota.Allotment{}, now, a.Window, a.Window, all)
		}
	default:
		a.Left(l, quota.Allotment{}, was.Window)
		before := was.Window - l.Window()
		a.Recall(l, quota.Allotment{}, now, before, before, was.PrevUsed)
		a.Return(l, before, was.PrevBack)
		a.Recall(l, quota.Allotment{}, now, was.Window, was.Window, was.Used)
		a.Return(l, was.Window, was.Back)
	}
}

// forget drops a bounded number of accounts whose windows are over.
func (f *former) forget(now int64) {
	for range maxDrops {
		i := len(f.ending) - 1
		if i < 0 || f.ending[i].ends > now {
			return
		}
		delete(f.keys, f.ending[i].key)
		f.ending = f.ending[:i]
	}
}

// recallOwn adds the use of the rights to a hit's key, under a limit of
// windows, to an empty account: that by this run, from the replicated cells,
// and that by former runs.
func recallOwn(a *quota.Account, h *Hit, f *former, eng *gossip.Engine, now int64) {
	l := h.Limit
	a.Left(l, quota.Allotment{}, now) // moves it to the window of now
	for _, window := range [...]int64{a.Window - l.Window(), a.Window} {
		own, moved := eng.Own(h.Key, window), eng.Rights(h.Key, window)
		a.Recall(l, quota.Allotment{}, now, window, window, sat.Add(own.P, moved.Given))
		a.Return(l, window, sat.Add(own.N, moved.Received))
	}
	f.recall(a, h.Key, l, now)
}

// HandOn ends the use of rights by this node, and adds the use of the rights of
// windows by this run and the former ones to a. It is the last call of a
// process that stops, after its last decision and transfer: later ones use no
// rights, and rights that it receives later are lost. It returns false without
// room for all accounts; a is of no use then. HandOn visits every key.
func (n *Node) HandOn(at Instant, a *Accounts) bool {
	now := n.millis(at)
	n.gate.closed = true
	if n.replica == nil {
		return false
	}
	a.AsOf = max(a.AsOf, now)
	for e := range n.keys.live.All {
		if e.Expires() > now {
			if k, used := handOn(n, e, now); used && !a.add(k) {
				return false
			}
		}
	}
	if f := n.keys.former; f != nil {
		for key := range f.keys {
			if k, _ := f.account(key); k.Ends > now && n.keys.live.Find(key) == nil && !a.add(k) {
				return false
			}
		}
	}
	handOnRules(n, a, now)
	return true
}

// add adds an account, and returns false without room.
func (a *Accounts) add(k KeyAccount) bool {
	if len(a.Keys) == MaxAccounts {
		return false
	}
	a.Keys = append(a.Keys, k)
	return true
}

// handOn returns the use of the rights to a live key, and whether there is any.
func handOn(n *Node, e *keytable.Entry, now int64) (k KeyAccount, used bool) {
	was, _ := n.keys.former.account(e.Key)
	k = KeyAccount{Key: e.Key, Window: e.Cell.Window, Ends: max(e.Expires(), was.Ends)}
	h := Hit{Key: e.Key}
	if e.Rule >= 0 {
		h.Rule = n.rules.set.Rules()[e.Rule]
		if h.Limit = h.Rule.Limit; !quota.Of(h.Limit).Windowed() || !h.Limit.HasRights() {
			return k, false
		}
	}
	a := n.keys.sides.account(e.Extra)
	switch {
	case a != nil:
		k.set(&a.Account)
	case e.Inherited() || h.Rule == nil && usedUnknown(n, e.Key):
		k.Used = all
	case h.Rule == nil:
		return was, was.Used > 0 || was.PrevUsed > 0
	default:
		var recalled quota.Account
		recallOwn(&recalled, &h, n.keys.former, n.replica.engine, now)
		k.set(&recalled)
	}
	return k, k.Used > 0 || k.PrevUsed > 0 || k.Back > 0 || k.PrevBack > 0
}

// set takes the numbers of an account.
func (k *KeyAccount) set(a *quota.Account) {
	k.Window, k.Used, k.Back, k.PrevUsed, k.PrevBack = a.Window, a.Used, a.Back, a.PrevUsed, a.PrevBack
}

// usedUnknown reports whether a node counted hits of a key under a rule
// that is not in force here any more.
func usedUnknown(n *Node, k crdt.Key) bool {
	return slices.ContainsFunc(n.replica.engine.CellsOf(k), func(c gossip.Cell) bool {
		return c.Incarnation == n.incarnation && c.Rule != 0
	})
}

// handOnRules adds the rules with rights of windows, but for those with keys
// that share an overflow counter: their use is not known by key. A rule stays
// out if a shard leaves it out.
func handOnRules(n *Node, a *Accounts, now int64) {
	var known []KnownRule
	for _, r := range n.rules.set.Rules() {
		if r.Limit == nil || !quota.Of(r.Limit).Windowed() || !r.Limit.HasRights() {
			continue
		}
		h := Hit{Limit: r.Limit, Rule: r}
		if at := n.keys.overflow.Find(overflowKey(&h)); at != nil && at.Expires() > now {
			continue
		}
		k := KnownRule{Name: r.Shared(), Weighted: quota.Of(r.Limit).Weighted(), After: math.MinInt64}
		if f := n.keys.former; f != nil {
			var ok bool
			if k.After, ok = f.after(k.Name, k.Weighted); !ok {
				k.After = f.until
			}
		}
		known = append(known, k)
	}
	if n.cfg.Shard == 0 {
		a.Rules = known
		return
	}
	a.Rules = slices.DeleteFunc(a.Rules, func(r KnownRule) bool { return !slices.Contains(known, r) })
}
