//go:build e2e

package e2e

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/gossip/swim"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/wire"
)

// far is more than any limit.
const far = 1 << 40

const handshakes, events = "rld_refused_handshakes_total", "rld_replica_events_total"

var identity = []string{`reason="identity"`}

// heists are the attacks of TestHostilePeer. The last one has a penalty for the
// thief.
var heists = []heist{
	{
		name: "another daemon, as the dialer", metric: handshakes, series: identity,
		log: []string{"peer refused", "reason=identity", "remote="},
		begin: func(s *thief, _ string) (attack, end func()) {
			g := s.dials(s.helloAs("a", "a-1"), s.c.daemon("a-0"))
			fresh := s.withNewKey().dials(s.helloAs("a", "a-1"), s.c.daemon("a-0"))
			return func() {}, func() {
				if g.to(s.c.daemon("a-0")) != 0 || fresh.to(s.c.daemon("a-0")) != 0 {
					s.t.Error("the thief has a stream as another daemon")
				}
				g.close()
				fresh.close()
			}
		},
	},
	{
		name: "another daemon, as the listener", metric: handshakes, series: identity,
		log: []string{"peer refused", "reason=identity", "addr="},
		begin: func(s *thief, _ string) (attack, end func()) {
			g := s.answers(s.helloAs("b", "b-1"))
			return func() {}, g.close
		},
	},
	{
		name: "the incarnation of another daemon", metric: handshakes, series: identity,
		begin: func(s *thief, _ string) (attack, end func()) {
			hello := s.hello()
			hello.Member.ID = s.incarnation(s.c.daemon("a-1"))
			g := s.dials(hello, s.c.daemon("a-0"))
			return func() {}, g.close
		},
	},
	{
		name: "invented regions", metric: handshakes, series: identity,
		begin: func(s *thief, _ string) (attack, end func()) {
			var all []*guise
			for i := range 64 {
				all = append(all, s.withNewKey().dials(s.helloAs(fmt.Sprint("nowhere-", i), "b-0"), s.c.daemon("a-0")))
			}
			return func() {}, func() {
				for _, g := range all {
					if g.to(s.c.daemon("a-0")) != 0 {
						s.t.Errorf("the thief has a stream as a daemon of %s", g.hello.Member.Region)
					}
					g.close()
				}
			}
		},
	},
	{
		name: "sums of regions and daemons", metric: events, series: []string{`kind="sum_exceeded"`},
		log:     []string{"other regions claim to have admitted more than all rights"},
		mayDeny: []string{"plain"},
		begin: cells(func(g *guise, c gossip.Cell) []gossip.Cell {
			c.Kind, c.Value, c.Rate = gossip.RegionSum, crdt.PN{P: far}, math.MaxUint32
			var all []gossip.Cell
			for _, of := range []crdt.Incarnation{gossip.RegionIncarnation("b"), gossip.RegionIncarnation("a"), gossip.LostIncarnation("a")} {
				c.Incarnation = of
				all = append(all, c)
			}
			return all
		}),
	},
	{
		name: "counts in the name of others", metric: events, series: []string{`kind="cell_forged"`},
		log: []string{"a peer sends counts that it cannot know"},
		begin: cells(func(g *guise, c gossip.Cell) []gossip.Cell {
			c.Value = crdt.PN{P: far}
			var all []gossip.Cell
			for _, d := range g.s.c.in("a") {
				for _, k := range []gossip.Kind{gossip.Daemon, gossip.Transferred} {
					c.Kind, c.Incarnation = k, g.to(d)
					all = append(all, c)
				}
			}
			for i := range 64 {
				c.Kind, c.Incarnation = gossip.RegionSum, gossip.RegionIncarnation(fmt.Sprint("nowhere-", i))
				all = append(all, c)
			}
			return all
		}),
	},
	{
		name: "transfers", metric: events, series: []string{`kind="transfer_rejected"`},
		log: []string{"a peer claims to have transferred more rights than it can hold"},
		begin: cells(func(g *guise, c gossip.Cell) []gossip.Cell {
			c.Kind, c.Incarnation, c.Value = gossip.Given, g.to(g.toward), crdt.PN{P: far}
			return []gossip.Cell{c}
		}),
	},
	{
		name: "leases and votes", metric: "rld_strict_rejected_items_total",
		log: []string{"items about strict keys are rejected", "b/b-0"},
		begin: func(s *thief, value string) (attack, end func()) {
			g := s.peer()
			return func() {
				for _, d := range s.c.in("a") {
					for _, m := range g.leases(d, value) {
						g.sendsStrict(d, m)
					}
				}
			}, func() {}
		},
	},
	{
		name: "nonces, echoes, versions and stamps", metric: events, series: []string{`kind="drift_rejected"`},
		log: []string{"a peer's clock is too far ahead and is not followed"},
		begin: func(s *thief, value string) (attack, end func()) {
			g := s.peer()
			far := uint64(1) << 62
			return func() {
				far++ // a nonce counts once
				for _, d := range s.c.in("a") {
					for shard := range thiefShards {
						m := g.message(d)
						m.Shard, m.Stamp = shard, hlc.New(time.Now().AddDate(1_000, 0, 0).UnixMilli(), 0)
						m.Nonce, m.Echo, m.Held, m.Hi, m.Ack, m.Answers = far, far, far, far, far, true
						m.Unsent, m.Own = math.MaxInt64, math.MaxInt64
						m.Staleness = []gossip.Staleness{{Region: gossip.RegionIncarnation("a"), Age: math.MaxInt64}}
						g.sends(d, m)
					}
				}
			}, g.close
		},
	},
	{
		name: "kicks", log: []string{"stream of a peer ended", "another incarnation or stream took its place"},
		begin: func(s *thief, _ string) (attack, end func()) {
			var last []*guise
			drop := func() {
				for _, g := range last {
					g.close()
				}
				last = nil
			}
			same := s.hello()
			return func() {
				drop()
				other := s.hello()
				other.Member.Addr, same.Member.Addr = s.c.daemon("a-1").at.peer, s.c.daemon("a-1").at.peer
				for _, hello := range []link.Hello{other, same, same} {
					last = append(last, s.dials(hello, s.c.daemon("a-0")))
				}
			}, drop
		},
	},
	{
		name: "the membership of another region", metric: "rld_refused_members_total", series: []string{`reason="name_taken"`},
		log: []string{"membership refused: name taken", "a-1"},
		begin: func(s *thief, _ string) (attack, end func()) {
			var all []*swim.Swim
			for _, name := range []string{"a-1", "a-9"} { // a name that is taken, and a new one
				m, err := swim.Start(swim.Config{
					Self: s.helloAs("a", name).Member, Keys: [][]byte{s.derive("membership key")}, Bind: "127.0.0.1:0",
					Seeds: []string{s.c.daemon("a-0").at.swim},
				})
				if err != nil {
					s.t.Fatal(err)
				}
				m.SetReady(true)
				all = append(all, m)
			}
			return func() {}, func() {
				for _, m := range all {
					_ = m.Close()
				}
			}
		},
	},
	{
		name: "far addresses", metric: "rld_refused_claims_total", series: []string{`kind="address"`},
		log: []string{"an address that peers report is not dialed"},
		begin: func(s *thief, _ string) (attack, end func()) {
			lis, err := net.Listen("tcp", "127.0.0.9:0")
			if err != nil {
				s.t.Fatal(err)
			}
			var dialed atomic.Int64
			go func() {
				for {
					conn, err := lis.Accept()
					if err != nil {
						return
					}
					dialed.Add(1)
					conn.Close()
				}
			}()
			var members []gossip.Member
			for i, addr := range []string{"169.254.169.254:80", "10.11.12.13:22", lis.Addr().String()} {
				m := s.helloAs("b", fmt.Sprint("b-", 7+i)).Member
				m.Addr = addr
				members = append(members, m)
			}
			g := s.peer()
			g.host.SendMembers(append(members, g.hello.Member))
			lost := s.hello() // introduces itself at the address
			lost.Member.Addr = lis.Addr().String()
			other := s.dials(lost, s.c.in("a")...)
			return func() {
					for _, d := range s.c.in("a") {
						if other.to(d) != 0 {
							other.sends(d, other.message(d))
						}
					}
				}, func() {
					g.close()
					other.close()
					lis.Close()
					if n := dialed.Load(); n > 0 {
						s.t.Errorf("%d connections to an address outside of the networks of the region", n)
					}
				}
		},
	},
	{
		name: "invalid frames under many incarnations", metric: handshakes, series: []string{`reason="penalty"`},
		log: []string{"peer refused", "reason=penalty", "remote="},
		begin: func(s *thief, _ string) (attack, end func()) {
			a0 := s.c.daemon("a-0")
			// Faulty frames, of connections that end in a handshake, are none.
			invalids := func() float64 {
				all, err := a0.metric("rld_refused_frames_total")
				faulty, failed := a0.metric("rld_refused_frames_total", `reason="faulty"`)
				if err != nil || failed != nil {
					s.t.Error(err, failed)
				}
				return all - faulty
			}
			before, tried := invalids(), 0
			return func() {
					hello := s.hello() // another incarnation and address each time
					hello.Member.Addr = fmt.Sprint("127.0.0.1:", 1+tried)
					g := s.dials(hello, a0)
					defer g.close()
					for range 20 {
						if g.to(a0) != 0 {
							tried++
							g.host.Send(g.to(a0), invalid(g.message(a0)))
							break
						}
						time.Sleep(time.Millisecond)
					}
					time.Sleep(5 * time.Millisecond)
				}, func() {
					// The penalty doubles, from a second on.
					if n := invalids() - before; n < 1 || n > 4 {
						s.t.Errorf("%v frames ended a stream, want 1 to 4", n)
					}
				}
		},
	},
}

// cells returns the attack with forged cells of each key, sent to each daemon
// as a peer that is accepted.
func cells(forge func(g *guise, c gossip.Cell) []gossip.Cell) func(*thief, string) (attack, end func()) {
	return func(s *thief, value string) (attack, end func()) {
		g := s.peer()
		return func() {
			for _, d := range s.c.in("a") {
				g.toward = d
				for _, rule := range []string{"plain", "budgeted", "partition", strict} {
					_, c := s.hit(rule, value)
					g.sends(d, g.message(d, forge(g, c)...))
				}
			}
		}, func() {}
	}
}

// leases returns messages about a strict key of region a that only its daemons
// may send.
func (g *guise) leases(to *daemon, value string) []sticky.Message {
	h, c := g.s.hit(strict, value)
	self, rule, window, end := g.hello.Member.ID, h.Rule.Shared(), c.Window, c.Window+c.WindowLength
	watermarks := sticky.Watermarks{{Window: window, Amount: far, End: end}}
	var all []sticky.Message
	for _, of := range []crdt.Incarnation{self, g.to(g.s.c.daemon("a-0")), g.to(g.s.c.daemon("a-1"))} {
		grant := sticky.LeaseGrant{
			ID: 1, Owner: of, Round: 1, Key: h.Key, Rule: rule, Window: window, Until: end, Total: far, Remaining: far, Keep: far,
		}
		few := grant // so many that a lessee may have them
		few.Total = 5
		denial := grant
		denial.Total, denial.Remaining, denial.Keep, denial.Denied, denial.Never = 0, 0, 0, true, true
		back := sticky.LeaseRequest{Lessee: of, Owner: g.to(to), Key: h.Key, Rule: rule, Window: window, Returned: far}
		request := sticky.LeaseRequest{ID: 1 << 40, Lessee: of, Key: h.Key, Rule: rule, Window: window, Want: far, Need: 1}
		ballot := sticky.Ballot{Round: sticky.MaxRound, Owner: of, Term: 1}
		all = append(all,
			sticky.Message{Grants: []sticky.LeaseGrant{few}},
			sticky.Message{Grants: []sticky.LeaseGrant{grant}},
			sticky.Message{Grants: []sticky.LeaseGrant{denial}},
			sticky.Message{Requests: []sticky.LeaseRequest{back}},
			sticky.Message{Accepts: []sticky.Accept{{Key: h.Key, Ballot: ballot, Seq: 1, Watermarks: watermarks}}},
			sticky.Message{Accepted: []sticky.Accepted{{Key: h.Key, Ballot: ballot, Seq: 1, Voter: 1, Promised: ballot, Held: watermarks}}},
		)
		if of != self { // a region may lease what is there
			all = append(all, sticky.Message{Requests: []sticky.LeaseRequest{request}})
		}
	}
	return all
}

// invalid returns a frame that no daemon sends: one of random bytes, or a right
// one with a changed byte and the right checksum, or one of another sender.
func invalid(m gossip.Message) []byte {
	if rand.IntN(3) == 0 {
		m.From++
	}
	frame, err := wire.Encode(nil, []gossip.Message{m})
	if err != nil || rand.IntN(2) == 0 {
		return append([]byte{wire.Version}, "what is this"...)
	}
	if m.From&1 == 0 {
		frame = frame[:len(frame)-1]
	}
	return frame
}

// incarnation returns that of a daemon, as the thief finds it out.
func (s *thief) incarnation(of *daemon) crdt.Incarnation {
	s.t.Helper()
	g := s.dials(s.hello(), of)
	defer g.close()
	s.c.within(patience, "a stream of the thief", func() string {
		if g.to(of) == 0 {
			return "none"
		}
		return ""
	})
	return g.to(of)
}
