package sim

import (
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// books is what the auditors know together: who counted what when, and who
// was told of it. No replica knows as much.
type books struct {
	gossip gossip.Config
	naive  bool
	owners bool
	lag    time.Duration // across regions, when nothing goes wrong
	// restored says that a region counted what it took for forgotten.
	restored bool
	turn     uint64 // see watcher.first
	writers  writers
	clocks   windowClocks
	ledger   ledger
	hearing  hearing
	views    map[earKey]*view
	looking  looking

	// entry is what was made of the latest Decided.
	entry entry
}

// entry is a decision as the books have it.
type entry struct {
	writer *writer
	shard  int
	now    int64 // of the label clock that decided, Unix ms
	book   *book
	page   *page  // of its label
	before uint64 // charged on the page before this
	// charged is the hits counted, admitted those of them that the limit let
	// pass: less in shadow mode and with charge_denied.
	charged, admitted uint64
	// free is those admitted that no home had a say in.
	free  uint64
	usage usage
}

func newBooks(cfg *Config) *books {
	return &books{
		gossip: cfg.Node.Gossip.WithDefaults(), naive: cfg.Node.Naive || cfg.Policy == Naive, lag: cfg.lag(), owners: cfg.anyOwners(),
		writers: newWriters(cfg), clocks: newWindowClocks(cfg), ledger: newLedger(cfg), hearing: newHearing(cfg),
		views: make(map[earKey]*view),
	}
}

func (b *books) decided(w *World, d *Decided) {
	from := b.writers.of(d.Daemon)
	shard := node.ShardOf(d.Key, len(d.Daemon.Nodes))
	now := b.clocks.decided(d, shard)
	e := &b.entry
	*e = entry{writer: from, shard: shard, now: now}
	if from == nil || d.Limit == nil || d.Rule != nil && d.Rule.Limit != d.Limit {
		return // an override, which the rule's label does not show
	}
	if l := d.Limit; l.ChargeDenied || d.Allowed && (!d.Status.Over || l.Shadow) {
		e.charged = d.Hits
	}
	if d.Allowed && !d.Status.Over {
		e.admitted = d.Hits
	}
	// A daemon without room for a key says only that, whatever else is amiss.
	if why := d.Status.Degraded; d.Limit.OnFailure == rules.Allow && (unreached(why) || why == node.KeysFull) {
		e.free = e.admitted
	}
	b.ledger.enter(d, e)
	b.use(w, d)
	if b.ledger.grew > sweepAfter {
		b.ledger.sweep(b.clocks.slowest(w))
	}
}

func (b *books) stepped(w *World, d *Daemon, m *gossip.Message, err error) {
	b.clocks.stepped(w, d, m, err)
	b.hearing.stepped(w, b, d, m, err)
}

func (b *books) happened(w *World, d *Daemon, e gossip.Event) {
	b.clocks.happened(w, d, e)
	b.hearing.happened(w, &b.writers, d, e)
	b.restored = b.restored || e.Kind == gossip.CountsRestored
}

func (b *books) restarted(w *World, d *Daemon) {
	b.writers.start(w, d)
	b.clocks.start(w, d)
	b.hearing.start(w, b.writers.of(d))
}

func (b *books) down(w *World, d *Daemon) {
	if from := b.writers.of(d); from != nil {
		b.hearing.stop(w, &b.writers, from)
		b.looking.forget(from.index, len(d.Nodes))
	}
	b.writers.stop(d)
}

// homed reports whether homes decide the hits of a limit, and counts that are
// told do not.
func (b *books) homed(l *rules.Limit) bool { return b.owners && l.Homed() }

// unreached reports whether an answer is one without a home.
func unreached(d node.Degraded) bool { return d == node.OwnerUnreachable || d == node.CircuitOpen }

// counted reports whether a limit's counts mean to an auditor what they mean
// to a replica: those of a rule that refuses by its own count alone. Rules in
// shadow mode refuse nothing.
func counted(l *rules.Limit) bool { return l != nil && !l.Shadow && !l.Unlimited }
