package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	epochs "github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/wire"
)

// Trace selects the events of a run that are written down, one line each:
//
//	TIME  EVENT  DAEMON  WHAT  DETAILS
//
// TIME is the virtual time in seconds, EVENT the number of the event in the
// run, DAEMON "*" for what concerns the cluster. A run is the same with and
// without it.
type Trace struct {
	// From and To are the first and the last virtual time.
	From, To time.Duration
	// Daemons holds regions and daemons, none for all.
	Daemons []string
	// States adds the states of the daemons: all of them at From and at To, and
	// that of a key after each decision.
	States bool
	// Line gets each line, without its end.
	Line func(line string)
}

// lines writes the trace of a run.
type lines struct {
	*Trace
	world   *World
	decoder wire.Decoder
	asked   [][]askedKey // by daemon
	began   bool         // the states at From are written
	ended   bool         // those at To are
}

// askedKey is a key that a daemon decided about.
type askedKey struct {
	hit  node.Hit
	set  int
	text string // of the descriptor
}

// maxAsked bounds the keys of a daemon whose states are written at From and To:
// the latest ones.
const maxAsked = 8

func newLines(t *Trace, w *World) *lines {
	if t == nil {
		return nil
	}
	return &lines{Trace: t, world: w, asked: make([][]askedKey, len(w.daemons))}
}

// traced reports whether the trace has lines about a daemon now, nil for the
// cluster.
func (w *World) traced(d *Daemon) bool {
	l := w.lines
	return l != nil && w.now >= l.From && w.now <= l.To && (d == nil || d.in(l.Daemons))
}

// add writes a line about a daemon, nil for the cluster, also of an error that
// has more than one. The caller has checked traced.
func (l *lines) add(d *Daemon, what, format string, args ...any) {
	name := "*"
	if d != nil {
		name = d.Name
	}
	text := fmt.Sprintf("%15.9f %8d  %-8s %-10s ", l.world.now.Seconds(), l.world.count, name, what)
	text += strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	l.Line(strings.TrimRight(text, " "))
}

// before writes the states of the daemons when the next event is the first one
// from From on, or behind To.
func (l *lines) before(w *World, at time.Duration) {
	if l == nil || !l.States {
		return
	}
	if !l.began && at >= l.From && w.now <= l.To {
		l.began = true
		l.states(w, max(w.now, l.From))
	}
	if l.began && !l.ended && at > l.To {
		l.ended = true
		l.states(w, l.To)
	}
}

// end writes what before has not written when the run ends.
func (l *lines) end(w *World) {
	l.before(w, w.now+1)
	if l != nil && l.began && !l.ended {
		l.states(w, w.now)
	}
}

// states writes the states of all daemons at a time since the last event.
func (l *lines) states(w *World, at time.Duration) {
	before := w.now
	w.now = at
	for _, d := range w.daemons {
		if w.traced(d) {
			l.stateOf(d)
		}
	}
	w.now = before
}

// stateOf writes the state of a daemon.
func (l *lines) stateOf(d *Daemon) {
	w := l.world
	if !d.Up {
		l.add(d, "state", "down, %d faults keep it down", d.downs)
		return
	}
	at := d.Instant(w.now)
	l.add(d, "state", "paused=%t process=%d since=%s rules=%d clock=%+dus synced=%t members=%s", d.Paused, d.member,
		seconds(d.started), d.Set, (at.Wall-w.base-int64(w.now))/1000, d.Synced(), l.namesOf(d.known))
	l.stateOfLinks(d, at)
	if d.agent != nil {
		s := d.agent.Agent.Status()
		epochs := ""
		for _, e := range slices.Concat(s.Regions, s.Daemons) {
			epochs += fmt.Sprintf(" epoch=%s settled=%t members=%v", e.ID, e.Settled, e.Members)
			if !e.Settled {
				epochs += fmt.Sprintf(" missing=%v no_vote=%v", e.Missing, e.NoVote)
			}
		}
		l.add(d, "state", "rights holds=%t reason=%q failing=%q%s", s.Holds, s.Reason, s.Failing, epochs)
	}
	if d.acceptor != nil {
		s := d.acceptor.Acceptor.Status()
		l.add(d, "state", "acceptor voting=%t reason=%q layout=%d store=%d keys=%d", s.Voting, s.Reason, s.Layout.Number,
			s.Generation, s.Keys)
	}
	for i := range l.asked[d.Index] {
		l.stateOfKey(d, &l.asked[d.Index][i])
	}
}

// stateOfLinks writes a line for each peer, with the versions of all shards.
func (l *lines) stateOfLinks(d *Daemon, at node.Instant) {
	var peers []string
	versions := make(map[string]string)
	for _, n := range d.Nodes {
		for k := range n.Links(at) {
			peer := fmt.Sprintf("link=%s age=%s silent=%t", l.nameOf(k.Peer.ID), ageText(k.Age), k.Silent)
			if versions[peer] == "" {
				peers = append(peers, peer)
			}
			versions[peer] += fmt.Sprintf(" acked=%d/%d,received=%d", k.Acked, k.Head, k.Contiguous)
		}
	}
	for _, peer := range peers {
		l.add(d, "state", "%s%s", peer, versions[peer])
	}
}

func ageText(d time.Duration) string {
	if d < 0 {
		return "unknown"
	}
	return d.String()
}

// decided remembers the keys of a decision of a traced daemon, and writes their
// states.
func (l *lines) decided(d *Daemon, c *node.Call, set int) {
	w := l.world
	if !l.States || !d.in(l.Daemons) {
		return
	}
	hits := c.Hits()
	for i := range hits {
		if hits[i].Limit == nil {
			continue
		}
		k := askedKey{hit: hits[i], set: set, text: entries(c, i)}
		if k.hit.Rule == nil || k.hit.Limit != k.hit.Rule.Limit {
			own := *k.hit.Limit // it is the call's
			k.hit.Limit = &own
		}
		all := slices.DeleteFunc(l.asked[d.Index], func(o askedKey) bool { return o.hit.Key == k.hit.Key })
		if len(all) >= maxAsked {
			all = slices.Delete(all, 0, 1)
		}
		l.asked[d.Index] = append(all, k)
		if w.traced(d) {
			l.stateOfKey(d, &k)
		}
	}
}

// stateOfKey writes the state of a key at a daemon: its rights account, its
// lease, and at its owner the watermark.
func (l *lines) stateOfKey(d *Daemon, k *askedKey) {
	w := l.world
	if k.set != d.Set {
		return // the rule is not in force
	}
	at := d.Instant(w.now)
	x := d.Nodes[node.ShardOf(k.hit.Key, len(d.Nodes))].Explain(at, &k.hit)
	text := fmt.Sprintf("key=%s %s used=%d elsewhere=%d of=%d window=%s", keyText(k.hit.Key), k.text, x.Used, x.Elsewhere,
		x.Capacity, l.windowText(x.Window))
	if r := x.Rights; r != nil {
		text += fmt.Sprintf(" allotment=%d received=%d given=%d spent=%d left=%d", r.Allotment, r.Received, r.Given, r.Used, r.Left)
		if r.Why != epochs.ReasonEpoch {
			text += fmt.Sprintf(" why=%q", r.Why)
		}
	}
	if e := x.Ledger; e != nil {
		text += " owner=" + l.nameOf(e.Owner.Incarnation)
		if s := e.Lease; s != nil {
			text += fmt.Sprintf(" granted=%d spent=%d returned=%d left=%d until=%s requesting=%t", s.Granted, s.Used,
				s.Returned, s.Left, l.windowText(s.Until), s.Requesting)
		}
		if o := e.Owned; o != nil {
			text += fmt.Sprintf(" watermark=%d consumed=%d room=%d limit_left=%d round=%d", o.Watermark, o.Consumed, o.Room,
				o.Left, o.Ballot.Round)
		}
	}
	l.add(d, "state", "%s", text)
}

// decision writes a decision.
func (l *lines) decision(a *pendingCall) {
	w := l.world
	d, c := a.daemon, a.call
	if w.traced(d) {
		outcome := "denied"
		if c.Decision.Allowed {
			outcome = "admitted"
		}
		if c.Peek {
			outcome += " peek"
		}
		hits := c.Hits()
		for i := range hits {
			st := &c.Statuses[i]
			if st.Limit == nil {
				l.add(d, "decide", "key=- %s %s hits=%d unlimited", entries(c, i), outcome, hits[i].N)
				continue
			}
			l.add(d, "decide", "key=%s %s %s hits=%d over=%t remaining=%d reset=%v retry=%v gate=%q degraded=%q waited=%v",
				keyText(hits[i].Key), entries(c, i), outcome, hits[i].N, st.Over, st.Remaining, st.Reset, st.Retry, st.Gate,
				st.Degraded, w.now-a.since)
		}
	}
	l.decided(d, c, a.set)
}

// happened writes an event of a node.
func (l *lines) happened(d *Daemon, e gossip.Event) {
	text := e.Kind.String()
	if e.Peer != 0 {
		text += " peer=" + l.nameOf(e.Peer)
	}
	if e.Reason != 0 {
		text += fmt.Sprintf(" reason=%q", e.Reason)
	}
	l.add(d, "event", "%s amount=%d", text, e.Amount)
}

// frame writes a frame that a daemon sends or receives.
func (l *lines) frame(d *Daemon, what, peer string, from replica.Origin, frame []byte, fate string) {
	l.add(d, what, "%s bytes=%d sum=%08x %s%s", peer, len(frame), uint32(sumOf(frame)), l.frameText(from, frame), fate)
}

// wake writes the timers of a daemon that are due.
func (l *lines) wake(d *Daemon) {
	w := l.world
	var due []string
	now := d.Instant(w.now).Mono
	for i, at := range d.wakes {
		switch {
		case at > now:
		case i < len(d.Nodes):
			due = append(due, fmt.Sprintf("shard-%d", i))
		default:
			due = append(due, [otherWakes]string{"rights", "acceptor", "calls", "control"}[i-len(d.Nodes)])
		}
	}
	if len(due) > 0 {
		l.add(d, "timer", "%s", strings.Join(due, " "))
	}
}

// frameText describes the content of a frame.
func (l *lines) frameText(from replica.Origin, frame []byte) string {
	var b strings.Builder
	switch {
	case wire.IsRights(frame):
		m, err := wire.DecodeRights(frame)
		if err != nil {
			return "kind=unreadable"
		}
		fmt.Fprintf(&b, "kind=rights ready=%t epochs=%d acks=%d votes=%d demand=%d", m.Ready,
			len(m.Regions.Epochs)+len(m.Daemons.Epochs), len(m.Regions.Acks)+len(m.Daemons.Acks), len(m.Votes), len(m.Demand))
		if m.Extension != nil {
			b.WriteString(" extension")
		}
	case wire.IsStrict(frame):
		l.strictText(&b, frame)
	case wire.IsControl(frame):
		controlText(&b, from, frame)
	default:
		all, err := l.decoder.Decode(from.Incarnation, from.To, frame)
		if err != nil {
			return "kind=unreadable"
		}
		b.WriteString("kind=counts")
		for i := range all {
			l.countsText(&b, &all[i])
		}
	}
	return b.String()
}

// countsText adds the counts of a shard.
func (l *lines) countsText(b *strings.Builder, m *gossip.Message) {
	fmt.Fprintf(b, " shard=%d versions=%d..%d ack=%d", m.Shard, m.Lo, m.Hi, m.Ack)
	for _, part := range []struct {
		name string
		is   bool
	}{{"ready", m.Ready}, {"complete", m.Complete}} {
		if part.is {
			b.WriteString(" " + part.name)
		}
	}
	for _, part := range []struct {
		name string
		n    int
	}{{"refused", len(m.Refused)}, {"digests", len(m.Digests)}, {"repair", len(m.Repair)}, {"cells", len(m.Cells)}} {
		if part.n > 0 {
			fmt.Fprintf(b, " %s=%d", part.name, part.n)
		}
	}
	for i := range m.RightsMessages {
		r := &m.RightsMessages[i]
		fmt.Fprintf(b, " [rights %d key=%s left=%d need=%d]", r.Kind, keyText(r.Key), r.Rights, r.Need)
	}
	for i := range min(len(m.Loads), maxItems) {
		r := &m.Loads[i]
		fmt.Fprintf(b, " [load key=%s window=%s others=%v offered=%d doubted=%d]", keyText(r.Key), l.windowText(r.Window), r.Others, r.Offered, r.Doubted)
	}
	for i := range min(len(m.Cells), maxItems) {
		c := &m.Cells[i]
		window := l.windowText(c.Window)
		if c.Known { // the frame has the place of the window in its block alone
			window = fmt.Sprintf("#%d/%d", c.Number, c.Window)
		}
		fmt.Fprintf(b, " [%v %s key=%s window=%s %v]", c.Kind, l.nameOf(c.Incarnation), keyText(c.Key), window, c.Value)
	}
}

// maxItems bounds the items of a message that a line describes one by one.
const maxItems = 4

// strictText adds a message about strict keys.
func (l *lines) strictText(b *strings.Builder, frame []byte) {
	m, err := wire.DecodeStrict(frame)
	if err != nil {
		b.WriteString("kind=unreadable")
		return
	}
	fmt.Fprintf(b, "kind=strict layout=%d requests=%d grants=%d accepts=%d accepted=%d snapshots=%d", m.Number, len(m.Requests),
		len(m.Grants), len(m.Accepts), len(m.Accepted), len(m.SnapshotRequests)+len(m.SnapshotChunks))
	for i := range min(len(m.Requests), maxItems) {
		r := &m.Requests[i]
		fmt.Fprintf(b, " [request %d key=%s want=%d need=%d returned=%d window=%s]", r.ID, keyText(r.Key), r.Want, r.Need,
			r.Returned, l.windowText(r.Window))
	}
	for i := range min(len(m.Grants), maxItems) {
		g := &m.Grants[i]
		fmt.Fprintf(b, " [grant %d key=%s total=%d denied=%t remaining=%d window=%s reason=%q]", g.ID, keyText(g.Key), g.Total,
			g.Denied, g.Remaining, l.windowText(g.Window), g.Reason)
	}
	for i := range min(len(m.Accepts), maxItems) {
		a := &m.Accepts[i]
		fmt.Fprintf(b, " [accept %d key=%s round=%d watermarks=%v]", a.Seq, keyText(a.Key), a.Ballot.Round, a.Watermarks)
	}
	for i := range min(len(m.Accepted), maxItems) {
		a := &m.Accepted[i]
		fmt.Fprintf(b, " [accepted %d key=%s ok=%t reason=%q]", a.Seq, keyText(a.Key), a.OK, a.Reason)
	}
}

// controlText adds a message of the control log.
func controlText(b *strings.Builder, from replica.Origin, frame []byte) {
	m, err := wire.DecodeControl(from.ControlEnds(), frame)
	if err != nil {
		b.WriteString("kind=unreadable")
		return
	}
	fmt.Fprintf(b, "kind=control state=%d since=%d version=%v want=%t base=%d entries=%d requests=%d", m.State, m.Since, m.Version, m.Want, len(m.Base), len(m.Entries), len(m.Requests))
	for i := range min(len(m.Raft), maxItems) {
		r := m.Raft[i]
		fmt.Fprintf(b, " [%v term=%d index=%d commit=%d reject=%t]", r.GetType(), r.GetTerm(), r.GetIndex(), r.GetCommit(), r.GetReject())
	}
	if f := m.Founding; f != nil {
		fmt.Fprintf(b, " [%s round=%d]", f.Step, f.Ballot.Round)
	}
}

// entries returns the entries of a descriptor of a call.
func entries(c *node.Call, i int) string {
	var b strings.Builder
	for k, e := range c.Descriptors[i].Entries {
		if k > 0 {
			b.WriteByte(';')
		}
		b.WriteString(e.Key + "=" + e.Value)
	}
	return b.String()
}

// keyText formats a key.
func keyText(k crdt.Key) string { return fmt.Sprintf("%016x", uint64(k)) }

// windowText returns a wall time in Unix ms as virtual time.
func (l *lines) windowText(ms int64) string { return seconds(time.Duration(ms*1e6 - l.world.base)) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }

// nameOf returns the name of an incarnation of a daemon or a region. That of an
// earlier process has its number.
func (l *lines) nameOf(i crdt.Incarnation) string {
	w := l.world
	if n, known := w.membership.byAddress[i]; known {
		m := &w.membership.all[n]
		if w.daemons[m.daemon].member != n {
			return fmt.Sprintf("%s#%d", m.name, n)
		}
		return m.name
	}
	for _, r := range w.regions {
		if gossip.RegionIncarnation(r) == i {
			return r
		}
	}
	return i.String()
}

// namesOf returns the names of processes.
func (l *lines) namesOf(all []int32) string {
	w := l.world
	names := make([]string, len(all))
	for i, n := range all {
		names[i] = l.nameOf(w.membership.all[n].incarnations[0])
	}
	return strings.Join(names, ",")
}
