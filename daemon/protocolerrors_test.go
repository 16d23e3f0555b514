package daemon

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/daemon/report"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/gossip/swim"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/node"
	"github.com/georld/rld/telemetry"
	"github.com/georld/rld/wire"
)

// violation is invalid input of a peer.
type violation struct {
	name    string
	prepare func(w *world) // before the daemons start; nil: nothing
	// attack sends it to the first daemon, several times.
	attack func(w *world, victim *resident)
	// logs are parts of the one line that the daemon logs: the sender, and the
	// remedy.
	logs []string
	// counts is the metric of the daemon that grows.
	counts func(s *telemetry.ClusterStats) uint64
}

// violations are the kinds of invalid input.
var violations = []violation{
	{
		name: "wrong cluster key",
		attack: func(w *world, _ *resident) {
			w.intrude("us", func(_ *link.Config, c *swim.Config) { c.Keys = [][]byte{[]byte("fedcba9876543210")} })
			time.Sleep(time.Minute)
		},
		logs:   []string{"membership refused: wrong key", "10.1.0.9", "the key that this daemon encrypts with"},
		counts: membersRefused("wrong_key"),
	},
	{
		name: "wrong cluster secret",
		attack: func(w *world, _ *resident) {
			w.intrude("mars", func(c *link.Config, _ *swim.Config) {
				c.Fingerprints = func() link.Fingerprints { return link.Fingerprints{{1}} }
			})
		},
		logs:   []string{"peer refused", "mars/mallory", "10.9.0.9", "give all daemons the same cluster.secret_file"},
		counts: handshakesRefused(link.ReasonSecret),
	},
	{
		name: "wrong region name, in the membership",
		attack: func(w *world, _ *resident) {
			w.intrude("us", func(_ *link.Config, c *swim.Config) { c.Self.Region = "mars" })
		},
		logs:   []string{"membership refused: wrong region", "name=mallory", "region=mars", `"would be right"=us`},
		counts: membersRefused("wrong_region"),
	},
	{
		name: "wrong region name, on a stream",
		prepare: func(w *world) {
			w.residents[0].contacts = map[string][]string{"eu": {"10.2.0.1:7947", "10.9.0.9:7947"}}
			w.intrude("mars", nil)
		},
		attack: func(*world, *resident) { time.Sleep(5 * time.Second) },
		logs: []string{
			"peer refused", "mars/mallory", "10.9.0.9:7947",
			`it is in region \"mars\", and its address is one of region \"eu\": correct the peers of \"eu\"`,
		},
		counts: handshakesRefused(link.ReasonRegion),
	},
	{
		name:    "certificate of another CA, at a stream that it dials",
		prepare: func(w *world) { w.certify() },
		attack: func(w *world, _ *resident) {
			w.intrude("mars", func(c *link.Config, _ *swim.Config) {
				c.Certificates = w.certificate()
				c.Client = c.Certificates.Client()
				c.Client.VerifyConnection = nil // accepts every certificate
			})
		},
		logs:   []string{"peer refused", "10.9.0.9", "us/us-0 (10.1.0.1:7947) refuses 10.9.0.9:", "TLS: ", "unknown authority"},
		counts: handshakesRefused(link.ReasonTLS),
	},
	{
		name: "certificate of another CA, at an address that is dialed",
		prepare: func(w *world) {
			w.certify()
			w.residents[0].contacts = map[string][]string{"eu": {"10.2.0.1:7947", "10.9.0.9:7947"}}
			m := w.intrude("mars", func(c *link.Config, _ *swim.Config) { c.Certificates = w.certificate() })
			m.host.Targets(nil)
		},
		attack: func(*world, *resident) { time.Sleep(5 * time.Second) },
		logs:   []string{"peer refused", "10.9.0.9:7947", "TLS: ", "unknown authority"},
		counts: handshakesRefused(link.ReasonTLS),
	},
	{
		name:   "a second daemon of the same name",
		attack: func(w *world, _ *resident) { w.double() },
		logs: []string{
			"membership refused: name taken", "name=us-1",
			`"held by"=10.1.0.2:7946`, `"claimed by"=10.1.0.9:7946`,
		},
		counts: membersRefused("name_taken"),
	},
	{
		name: "older protocol version, at the handshake",
		attack: func(w *world, victim *resident) {
			hello := w.helloOf("mars", "mallory")
			hello.Protocol = link.Version - 1
			for range 3 {
				if w.greet(victim, hello) == nil {
					w.t.Error("the handshake succeeded")
				}
			}
		},
		logs:   []string{"peer refused", "10.9.0.9", "it speaks version 4 of the protocol, want 5: run a newer rld there"},
		counts: handshakesRefused(link.ReasonVersion),
	},
	{
		name: "newer protocol version, at the handshake",
		attack: func(w *world, victim *resident) {
			hello := w.helloOf("mars", "mallory")
			hello.Protocol = link.Version + 1
			for range 3 {
				if w.greet(victim, hello) == nil {
					w.t.Error("the handshake succeeded")
				}
			}
		},
		logs:   []string{"peer refused", "10.9.0.9", "it speaks version 6 of the protocol, want 5: run the same rld on both"},
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
		logs:   []string{"peer dropped for a protocol error", "us/mallory", "frame of version 4, want 5"},
		counts: framesRefused("version"),
	},
	{
		name:   "a frame of 1 GiB",
		attack: func(w *world, victim *resident) { w.announce(victim, 1<<30) },
		logs:   []string{"peer dropped for a protocol error", "10.9.0.9", "1073741824 vs. "},
		counts: framesRefused(link.ReasonSize),
	},
	{
		name:   "not a frame",
		attack: func(w *world, victim *resident) { w.accepted("us", victim).send(victim, []byte{wire.Version, 1, 2, 3}) },
		logs:   []string{"peer dropped for a protocol error", "us/mallory", "frame of 4 bytes, want at least"},
		counts: framesRefused("format"),
	},
	{
		name: "a message of the control log under another id",
		attack: func(w *world, victim *resident) {
			m := w.accepted("us", victim)
			frame, err := wire.EncodeControl(nil, &control.Message{From: m.hello.Member.ID, To: 1, Statement: control.Statement{Sender: control.Sender{ID: control.ID{1}}}})
			if err != nil {
				w.t.Fatal(err)
			}
			m.send(victim, frame)
		},
		logs:   []string{"peer dropped for a protocol error", "us/mallory", "checksum"},
		counts: framesRefused("checksum"),
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
		logs:   []string{"peer dropped for a protocol error", "us/mallory", "5000 cells in a message, want at most 4096"},
		counts: framesRefused("size"),
	},
	{
		name: "windows of the year 3000",
		attack: func(w *world, victim *resident) {
			m := w.accepted("us", victim)
			cell := w.residents[1].cellOf("x")
			cell.Incarnation, cell.Window = m.hello.Member.ID, year3000
			m.sends(victim, cell)
		},
		logs:   []string{"counts of a peer are rejected", "us/mallory", "too far ahead"},
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
		logs:   []string{"a peer's clock is too far ahead and is not followed", "us/mallory", "amount=315"},
		counts: events(gossip.DriftRejected),
	},
	{
		name: "negative counts of a daemon",
		attack: func(w *world, victim *resident) {
			m := w.accepted("us", victim)
			cell := w.residents[1].cellOf("x")
			cell.Incarnation, cell.Value = m.hello.Member.ID, crdt.PN{P: 50, N: 50}
			m.send(victim, forged(m.hello.Member.ID, victim.self.ID, m.frame(victim, cell), "refunded more than it admitted"))
		},
		logs:   []string{"peer dropped for a protocol error", "us/mallory", "a daemon refunded more than it admitted"},
		counts: framesRefused("format"),
	},
	{
		name:    "negative counts of a region",
		prepare: knowMars,
		attack: func(w *world, victim *resident) {
			m := w.accepted("mars", victim)
			cell := w.residents[1].cellOf("x")
			cell.Kind, cell.Incarnation, cell.Value = gossip.RegionSum, gossip.RegionIncarnation("mars"), crdt.PN{P: 1, N: 50}
			m.sends(victim, cell)
		},
		logs:   []string{"a peer sends counts that it cannot know: they are ignored", "mars/mallory"},
		counts: events(gossip.CellForged),
	},
	{
		name: "overflowing counts",
		attack: func(w *world, victim *resident) {
			m := w.accepted("us", victim)
			cell := w.residents[1].cellOf("x")
			cell.Incarnation, cell.Value = m.hello.Member.ID, crdt.PN{P: math.MaxUint64}
			m.sends(victim, cell)
		},
		logs:   []string{"a peer sends counts that it cannot know: they are ignored", "us/mallory"},
		counts: events(gossip.CellForged),
	},
	{
		name: "the incarnation of the receiver",
		attack: func(w *world, victim *resident) {
			m := w.accepted("us", victim)
			cell := victim.cellOf("x")
			cell.Value.P = 500
			m.sends(victim, cell)
		},
		logs:   []string{"a peer sends counts that it cannot know: they are ignored", "us/mallory"},
		counts: events(gossip.CellForged),
	},
	{
		name:    "the incarnation of a daemon of another region",
		prepare: knowMars,
		attack: func(w *world, victim *resident) {
			m := w.accepted("mars", victim)
			cell := w.residents[2].cellOf("x")
			cell.Value.P = 500
			m.sends(victim, cell)
		},
		logs:   []string{"a peer sends counts that it cannot know: they are ignored", "mars/mallory"},
		counts: events(gossip.CellForged),
	},
	{
		name:    "the sum of another region",
		prepare: knowMars,
		attack: func(w *world, victim *resident) {
			m := w.accepted("mars", victim)
			cell := w.residents[2].cellOf("x")
			cell.Kind, cell.Incarnation, cell.Value = gossip.RegionSum, gossip.RegionIncarnation("eu"), crdt.PN{P: 500}
			m.sends(victim, cell)
		},
		logs:   []string{"a peer sends counts that it cannot know: they are ignored", "mars/mallory"},
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
		logs:   []string{"peer dropped for a protocol error", "us/mallory", "it was cut, changed or misdirected"},
		counts: framesRefused("checksum"),
	},
}

// knowMars puts the region of the intruder into the settings of all daemons.
func knowMars(w *world) {
	for _, r := range w.residents {
		r.contacts = maps.Clone(r.contacts)
		r.contacts["mars"] = nil
	}
}

// year3000 is in Unix milliseconds.
var year3000 = time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// sends sends cells several times.
func (m *intruder) sends(to *resident, cells ...gossip.Cell) {
	m.w.t.Helper()
	for range 3 {
		m.send(to, m.frame(to, cells...))
		time.Sleep(time.Second)
	}
	for _, c := range cells {
		if r := to.remaining("visitor", "x"); r < m.w.limit-1 {
			m.w.t.Errorf("%s merged %v: %d remain of %d", to.name, c, r, m.w.limit)
		}
	}
}

func membersRefused(reason string) func(*telemetry.ClusterStats) uint64 {
	return func(s *telemetry.ClusterStats) uint64 { return s.Membership.Refused[reason] }
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

// TestProtocolErrors sends each kind of invalid input to a cluster. One line of
// the log and a metric report it, and the cluster continues.
func TestProtocolErrors(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long, and other tests run the same goroutines")
	}
	for _, h := range violations {
		t.Run(h.name, func(t *testing.T) {
			synctest.Test(t, h.run)
		})
	}
}

func (h *violation) run(t *testing.T) {
	w := emptyWorld(t, 1_000, 2, "us", "eu")
	if h.prepare != nil {
		h.prepare(w)
	}
	w.start()
	w.within(10*time.Second, "all are ready and connected", w.together)
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
		t.Errorf("%d lines of warnings and errors, want one:\n%s", len(complaints), strings.Join(complaints, ""))
	}
	if got := victim.lines(h.logs...); len(got) != 1 {
		t.Errorf("%d lines hold %q, want one:\n%s", len(got), h.logs, victim.log)
	}
	for _, r := range w.residents[1:] {
		if got := r.lines("level=ERROR"); len(got) > 0 {
			t.Errorf("%s logs errors: %s", r.name, got)
		}
	}
	w.unharmed()
}

// aftermath reports whether a line is only a consequence of a dropped stream or
// of silence.
func aftermath(line string) bool {
	return strings.Contains(line, "mallory") &&
		(strings.Contains(line, "reason=penalty") || strings.Contains(line, "event=peer_silent"))
}

// together reports whether all daemons are ready and connected to each other,
// with or without other peers.
func (w *world) together() bool {
	for _, r := range w.alive() {
		if !r.ready.Load() {
			return false
		}
		links := r.engine.Links(r.engine.Now())
		for _, o := range w.alive() {
			if o != r && !slices.ContainsFunc(links, func(l node.Link) bool {
				return l.Peer.ID == o.self.ID && fresh(&l)
			}) {
				return false
			}
		}
	}
	return true
}

// unharmed lets each daemon admit hits, which all must merge in time.
func (w *world) unharmed() {
	w.t.Helper()
	if !w.together() {
		w.t.Fatalf("the daemons are not connected any more:%s", w.describe())
	}
	if into := time.Duration(time.Now().Second()) * time.Second; into > 55*time.Second {
		untilInto(0)
	}
	left := w.limit
	for i, r := range w.residents {
		n := uint64(i + 1)
		if !r.hits(n, "visitor", "after") {
			w.t.Errorf("%s denies hits far below the limit", r.name)
		}
		left -= n
	}
	w.within(farBound, "all have the hits of each", func() bool { return w.agree("visitor", "after", left) })
}
