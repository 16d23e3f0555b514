package daemon

import (
	"github.com/georld/rld/daemon/report"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/gossip/swim"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/node"
	"github.com/georld/rld/telemetry"
)

// hostility is something that peers may not do.
type hostility struct {
	name    string
	prepare func(w *world) // before the daemons start; nil: nothing
	// attack does it to the first daemon, several times over.
	attack func(w *world, victim *resident)
	// says is what the one line holds that the attacked daemon logs: who did
	// it, and what would be right.
	says []string
	// counts is the metric of the attacked daemon that grows.
	counts func(s *telemetry.ClusterStats) uint64
}

// hostilities is the list of bad input: what each line of it does to a daemon.
var hostilities = []hostility{
	{
		name: "wrong cluster key",
		attack: func(w *world, _ *resident) {
			w.intrude("us", func(_ *link.Config, c *swim.Config) { c.Keys = [][]byte{[]byte("fedcba9876543210")} })
			time.Sleep(time.Minute)
		},
		says:   []string{"membership refused: wrong key", "10.1.0.9", "the key that this daemon encrypts with"},
		counts: membersRefused(func(r *swim.Refusals) uint64 { return r.WrongKey }),
	},
	{
		name: "wrong cluster secret",
		attack: func(w *world, _ *resident) {
			w.intrude("mars", func(c *link.Config, _ *swim.Config) { c.Fingerprint[0] = 1 })
		},
		says:   []string{"peer refused", "mars/mallory", "10.9.0.9", "give all daemons the same cluster.secret_file"},
		counts: handshakesRefused(link.ReasonSecret),
	},
	{
		name: "wrong region name, in the membership",
		attack: func(w *world, _ *resident) {
			w.intrude("us", func(_ *link.Config, c *swim.Config) { c.Self.Region = "mars" })
		},
		says:   []string{"membership refused: wrong region", "name=mallory", "region=mars", `"would be right"=us`},
		counts: membersRefused(func(r *swim.Refusals) uint64 { return r.WrongRegion }),
	},
	{
		name: "wrong region name, on a stream",
		prepare: func(w *world) {
			w.residents[0].contacts = map[string][]string{"eu": {"10.2.0.1:7947", "10.9.0.9:7947"}}
			w.intrude("mars", nil)
		},
		attack: func(*world, *resident) { time.Sleep(5 * time.Second) },
		says: []string{"peer refused", "mars/mallory", "10.9.0.9:7947",
			`it is in region \"mars\", and its address is one of region \"eu\": correct the peers of \"eu\"`},
		counts: handshakesRefused(link.ReasonRegion),
	},
	{
		name:    "certificate of another CA, at a stream that it dials",
		prepare: func(w *world) { w.certify() },
		attack: func(w *world, _ *resident) {
			w.intrude("mars", func(c *link.Config, _ *swim.Config) {
				c.Server, c.Client = w.certificate()
				c.Client.VerifyConnection = nil // it trusts everybody
			})
		},
		says:   []string{"peer refused", "10.9.0.9", "us/us-0 (10.1.0.1:7947) refuses 10.9.0.9:", "TLS: ", "unknown authority"},
		counts: handshakesRefused(link.ReasonTLS),
	},
	{
		name: "certificate of another CA, at an address that is dialed",
		prepare: func(w *world) {
			w.certify()
			w.residents[0].contacts = map[string][]string{"eu": {"10.2.0.1:7947", "10.9.0.9:7947"}}
			m := w.intrude("mars", func(c *link.Config, _ *swim.Config) { c.Server, c.Client = w.certificate() })
			m.host.Targets(nil)
		},
		attack: func(*world, *resident) { time.Sleep(5 * time.Second) },
		says:   []string{"peer refused", "10.9.0.9:7947", "TLS: ", "unknown authority"},
		counts: handshakesRefused(link.ReasonTLS),
	},
	{
		name:   "a second daemon of the same name",
		attack: func(w *world, _ *resident) { w.double() },
		says: []string{"membership refused: name taken", "name=us-1",
			`"held by"=10.1.0.2:7946`, `"claimed by"=10.1.0.9:7946`},
		counts: membersRefused(func(r *swim.Refusals) uint64 { return r.NameTaken }),
	},
	{
		name: "older protocol version, at the handshake",
		attack: func(w *world, victim *resident) {
			hello := w.helloOf("mars", "mallory")
			hello.Protocol = link.Version - 1
			for range 3 {
				if w.greet(victim, hello) == nil {
					w.t.Error("it was let in")
				}
			}
		},
		says:   []string{"peer refused", "10.9.0.9", "version of the protocol"},
		counts: handshakesRefused(link.ReasonHello),
	},
	{
		name: "newer protocol version, at the handshake",
		attack: func(w *world, victim *resident) {
			hello := w.helloOf("mars", "mallory")
			hello.Protocol = link.Version + 1
			for range 3 {
				if w.greet(victim, hello) == nil {
					w.t.Error("it was let in")
				}
			}
		},
		says:   []string{"peer refused", "10.9.0.9", "it speaks version 2 of the protocol, want 1: run the same rld on both"},
		counts: handshakesRefused(link.ReasonVersion),
	},
	{
		name: "older protocol version, of a frame",
		attack: func(w *world, victim *resident) {
			m := w.accepted("us", victim)
			frame := m.frame(victim)
			frame[0]--
			m.send(victim, frame)
		},
		says:   []string{"peer dropped for a protocol error", "us/mallory", "frame of version 0, want 1"},
		counts: framesRefused("version"),
	},
	{
		name:   "a frame of 1 GiB",
		attack: func(w *world, victim *resident) { w.announce(victim, 1<<30) },
		says:   []string{"peer dropped for a protocol error", "mars/mallory", "1073741824 vs. "},
		counts: framesRefused(link.ReasonSize),
	},
	{
		name:   "not a frame",
		attack: func(w *world, victim *resident) { w.accepted("us", victim).send(victim, []byte("\x01what is this")) },
		says:   []string{"peer dropped for a protocol error", "us/mallory", "frame of 13 bytes, want at least 37"},
		counts: framesRefused("format"),
	},
	{
		name: "a message of 5,000 cells",
		attack: func(w *world, victim *resident) {
			m := w.accepted("us", victim)
			cells := make([]gossip.Cell, 5_000)
			for i := range cells {
				cells[i] = w.residents[1].cellOf("x")
				cells[i].Incarnation, cells[i].Window = m.hello.Member.ID, cells[i].Window+int64(i)
			}
			m.send(victim, m.frame(victim, cells...))
		},
		says:   []string{"peer dropped for a protocol error", "us/mallory", "5000 cells in a message, want at most 4096"},
		counts: framesRefused("size"),
	},
	{
		name: "labels from the year 3000",
		attack: func(w *world, victim *resident) {
			m := w.accepted("us", victim)
			cell := w.residents[1].cellOf("x")
			cell.Incarnation, cell.Window = m.hello.Member.ID, year3000
			m.tells(victim, cell)
		},
		says:   []string{"counts of a peer are rejected", "us/mallory", "too far ahead"},
		counts: events(gossip.CellRefused),
	},
	{
		name: "a clock of the year 3000",
		attack: func(w *world, victim *resident) {
			m := w.accepted("us", victim)
			for range 3 {
				msg := m.message(victim)
				msg.Stamp = hlc.New(year3000, 0)
				m.send(victim, m.encode(msg))
			}
		},
		says:   []string{"a peer's clock is too far ahead and is not followed", "us/mallory", "amount=315"},
		counts: events(gossip.DriftRejected),
	},
	{
		name: "negative counts of a daemon",
		attack: func(w *world, victim *resident) {
			m := w.accepted("us", victim)
			cell := w.residents[1].cellOf("x")
			cell.Incarnation, cell.Value = m.hello.Member.ID, crdt.PN{P: 50, N: 50}
			m.send(victim, forged(m.frame(victim, cell), "refunded more than it admitted"))
		},
		says:   []string{"peer dropped for a protocol error", "us/mallory", "a daemon refunded more than it admitted"},
		counts: framesRefused("format"),
	},
	{
		name: "negative counts of a region",
		attack: func(w *world, victim *resident) {
			m := w.accepted("mars", victim)
			cell := w.residents[1].cellOf("x")
			cell.Kind, cell.Incarnation, cell.Value = gossip.RegionSum, gossip.RegionIncarnation("mars"), crdt.PN{P: 1, N: 50}
			m.tells(victim, cell)
		},
		says:   []string{"a peer sends counts that it cannot know: they are ignored", "mars/mallory"},
		counts: events(gossip.CellForged),
	},
	{
		name: "overflowing counts",
		attack: func(w *world, victim *resident) {
			m := w.accepted("us", victim)
			cell := w.residents[1].cellOf("x")
			cell.Incarnation, cell.Value = m.hello.Member.ID, crdt.PN{P: math.MaxUint64}
			m.tells(victim, cell)
		},
		says:   []string{"a peer sends counts that it cannot know: they are ignored", "us/mallory"},
		counts: events(gossip.CellForged),
	},
	{
		name: "the slot of whom it tells",
		attack: func(w *world, victim *resident) {
			m := w.accepted("us", victim)
			cell := victim.cellOf("x")
			cell.Value.P = 500
			m.tells(victim, cell)
		},
		says:   []string{"a peer sends counts that it cannot know: they are ignored", "us/mallory"},
		counts: events(gossip.CellForged),
	},
	{
		name: "the slot of a daemon of another region",
		attack: func(w *world, victim *resident) {
			m := w.accepted("mars", victim)
			cell := w.residents[2].cellOf("x")
			cell.Value.P = 500
			m.tells(victim, cell)
		},
		says:   []string{"a peer sends counts that it cannot know: they are ignored", "mars/mallory"},
		counts: events(gossip.CellForged),
	},
	{
		name: "the sum of another region",
		attack: func(w *world, victim *resident) {
			m := w.accepted("mars", victim)
			cell := w.residents[2].cellOf("x")
			cell.Kind, cell.Incarnation, cell.Value = gossip.RegionSum, gossip.RegionIncarnation("eu"), crdt.PN{P: 500}
			m.tells(victim, cell)
		},
		says:   []string{"a peer sends counts that it cannot know: they are ignored", "mars/mallory"},
		counts: events(gossip.CellForged),
	},
	{
		name: "a frame in the name of another incarnation",
		attack: func(w *world, victim *resident) {
			m := w.accepted("us", victim)
			msg := m.message(victim)
			msg.From = w.residents[1].self.ID
			m.send(victim, m.encode(msg))
		},
		says:   []string{"peer dropped for a protocol error", "us/mallory", "want its own, 0000000000000bad"},
		counts: framesRefused("foreign_sender"),
	},
}

// year3000 in Unix milliseconds.
var year3000 = time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// tells sends cells, several times over.
func (m *mallory) tells(to *resident, cells ...gossip.Cell) {
	m.w.t.Helper()
	for range 3 {
		m.send(to, m.frame(to, cells...))
		time.Sleep(time.Second)
	}
	for _, c := range cells {
		if r := to.remaining("user", "x"); r < m.w.limit-1 {
			m.w.t.Errorf("%s took %v: %d remain of %d", to.name, c, r, m.w.limit)
		}
	}
}

func membersRefused(count func(*swim.Refusals) uint64) func(*telemetry.ClusterStats) uint64 {
	return func(s *telemetry.ClusterStats) uint64 { return count(&s.Membership.Refused) }
}

func handshakesRefused(reason string) func(*telemetry.ClusterStats) uint64 {
	return func(s *telemetry.ClusterStats) uint64 { return s.Streams.Refused[reason] }
}

func framesRefused(reason string) func(*telemetry.ClusterStats) uint64 {
	return func(s *telemetry.ClusterStats) uint64 { return s.Streams.ProtocolErrors[reason] }
}

func events(k gossip.EventKind) func(*telemetry.ClusterStats) uint64 {
	return func(s *telemetry.ClusterStats) uint64 { return s.Events[k.String()] }
}

// TestHostile does each to a cluster: one line of the log and a metric tell of
// it, and the cluster goes on.
func TestHostile(t *testing.T) {
	for _, h := range hostilities {
		t.Run(h.name, func(t *testing.T) {
			synctest.Test(t, h.run)
		})
	}
}

func (h *hostility) run(t *testing.T) {
	w := emptyWorld(t, 1_000, 2, "us", "eu")
	if h.prepare != nil {
		h.prepare(w)
	}
	w.start()
	w.within(10*time.Second, "all are ready and hear each other", w.together)
	untilInto(5 * time.Second)
	victim := w.residents[0]
	if h.prepare == nil {
		victim.logged = len(victim.log.String())
	}
	h.attack(w, victim)
	time.Sleep(3 * time.Second)

	stats := newReport(victim.engine, report.Config{Cluster: clusterState{victim.cluster}, Region: victim.region}).ClusterStats()
	if h.counts(&stats) == 0 {
		t.Errorf("not counted: %+v", stats)
	}
	complaints := slices.Concat(victim.lines("level=WARN"), victim.lines("level=ERROR"))
	complaints = slices.DeleteFunc(complaints, aftermath)
	if len(complaints) != 1 {
		t.Errorf("%d lines of complaint, want one:\n%s", len(complaints), strings.Join(complaints, ""))
	}
	if got := victim.lines(h.says...); len(got) != 1 {
		t.Errorf("%d lines hold %q, want one:\n%s", len(got), h.says, victim.log)
	} else {
		t.Log(got[0])
	}
	for _, r := range w.residents[1:] {
		if got := r.lines("level=ERROR"); len(got) > 0 {
			t.Errorf("%s complains: %s", r.name, got)
		}
	}
	w.unharmed()
}

// aftermath reports whether a line only says what follows from being dropped,
// or from saying nothing: mallory is not heard for a while.
func aftermath(line string) bool {
	return strings.Contains(line, "mallory") &&
		(strings.Contains(line, "reason=penalty") || strings.Contains(line, "event=peer_silent"))
}

// together reports whether all daemons are ready and hear each other, whoever
// else they hear.
func (w *world) together() bool {
	for _, r := range w.alive() {
		if !r.ready.Load() {
			return false
		}
		links := r.engine.Links(r.engine.Now())
		for _, o := range w.alive() {
			if o != r && !slices.ContainsFunc(links, func(l node.Link) bool {
				return l.Peer.ID == o.self.ID && !l.Silent && l.Age >= 0 && l.Age < 2*time.Second
			}) {
				return false
			}
		}
	}
	return true
}

// unharmed has each daemon admit hits, which all must come to know in time.
func (w *world) unharmed() {
	w.t.Helper()
	if !w.together() {
		w.t.Fatalf("the daemons do not hear each other any more:%s", w.describe())
	}
	if into := time.Duration(time.Now().Second()) * time.Second; into > 55*time.Second {
		untilInto(0)
	}
	left := w.limit
	for i, r := range w.residents {
		n := uint64(i + 1)
		if !r.hits(n, "user", "after") {
			w.t.Errorf("%s refuses hits far from the limit", r.name)
		}
		left -= n
	}
	w.within(farBound, "all know what each admitted", func() bool { return w.agree("user", "after", left) })
}
