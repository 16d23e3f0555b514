package link

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// refusals is every hello that is not let in.
var refusals = []struct {
	name   string
	reason string
	text   string
	mend   func(g *greeting)
}{
	{"older", ReasonVersion, "version 0", func(g *greeting) { g.protocol = 0 }},
	{"newer", ReasonVersion, "version 6 of the protocol, want 5", func(g *greeting) { g.protocol = 6 }},
	{"other secret", ReasonSecret, "cluster.secret_file", func(g *greeting) { g.secrets[0][3] = 1 }},
	{"no secret", ReasonHello, "fingerprint of 0 bytes", func(g *greeting) { g.secrets = nil }},
	{
		"shards", ReasonShards, "8 shards, want 4: give all daemons the same max_keys and shards",
		func(g *greeting) { g.hello.Shards = 8 },
	},
	{"no shards", ReasonHello, "want 1 to 64", func(g *greeting) { g.hello.Shards = 0 }},
	{"many shards", ReasonHello, "want 1 to 64", func(g *greeting) { g.hello.Shards = 1 << 30 }},
	{"itself", ReasonSelf, "the daemon itself", func(g *greeting) { g.hello.Member.ID = 1 }},
	{"no incarnation", ReasonHello, "without an id", func(g *greeting) { g.hello.Member.ID = 0 }},
	{"no region", ReasonHello, "region of 0 bytes", func(g *greeting) { g.hello.Member.Region = "" }},
	{"no name", ReasonHello, "name of 0 bytes", func(g *greeting) { g.hello.Member.Name = "" }},
	{"long name", ReasonHello, "name of 129 bytes", func(g *greeting) { g.hello.Member.Name = strings.Repeat("x", 129) }},
	{"terminal codes", ReasonHello, "cannot be printed", func(g *greeting) { g.hello.Member.Name = "\x1b[2J" }},
	{"long build", ReasonHello, "build of 129 bytes", func(g *greeting) { g.hello.Member.Build = strings.Repeat("x", 129) }},
	{"no port", ReasonHello, "is not host:port", func(g *greeting) { g.hello.Member.Addr = "b" }},
	{"port 0", ReasonHello, "a number from 1 to 65535", func(g *greeting) { g.hello.Member.Addr = "b:0" }},
	{"long", ReasonHello, "want at most 4096", func(g *greeting) { g.hello.Member.Build = strings.Repeat("x", 5000) }},
}

// TestTheSecretIsNotShown: hellos of one secret have nothing in common by which
// they can be seen to have it, and a recorded proof is of no use to a daemon
// with another key, another run or another nonce.
func TestTheSecretIsNotShown(t *testing.T) {
	received := func(change func(*greeting)) greeting {
		g := greetingFrom(helloOf(2, "us", "b"))
		change(&g)
		got, err := decodeGreeting(encoded(t, g))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	accepts := func(g greeting) bool {
		return refuse(helloOf(1, "eu", "a"), Fingerprints{{}}, &g, nil, "b:1", "") == nil
	}
	one := received(func(*greeting) {})
	two := received(func(g *greeting) { g.nonce[0] = 1 })
	if !accepts(one) || !accepts(two) {
		t.Fatal("a true hello is refused")
	}
	if bytes.Equal(one.proofs[0], two.proofs[0]) || bytes.Equal(one.proofs[0], make([]byte, fingerprintSize)) {
		t.Errorf("hellos show %x and %x", one.proofs[0], two.proofs[0])
	}
	for name, change := range map[string]func(*greeting){
		"nonce": func(g *greeting) { g.nonce[0]++ },
		"key":   func(g *greeting) { g.public = keyOf(helloOf(3, "us", "c")).Public() },
		"run":   func(g *greeting) { g.hello.Run[0]++ },
	} {
		g := received(func(*greeting) {})
		if change(&g); accepts(g) {
			t.Errorf("a recorded proof is accepted with another %s", name)
		}
	}
}

// TestIncomingRefused has each of them dial a daemon.
func TestIncomingRefused(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *network) {
				a := n.start(t, helloOf(1, "eu", "a"), nil)
				for range 3 {
					g := greetingFrom(helloOf(2, "us", "b"))
					c.mend(&g)
					body := encoded(t, g)
					if c.name == "older" {
						// What has version 0 does not travel, so it names none.
						c.reason, c.text = ReasonHello, "names no version"
					}
					stream := n.open(t, a)
					if err := stream.SendMsg(&item{kind: kindHello, body: body}); err != nil {
						t.Fatal(err)
					}
					err := end(stream)
					var refused *Refused
					if !errors.As(err, &refused) || refused.Reason != c.reason || !strings.Contains(refused.Text, c.text) {
						t.Fatalf("the stream ended with %v, want it refused for %s: %s", err, c.reason, c.text)
					}
				}
				if s := a.Stats(); s.Refused[c.reason] != 3 || s.Accepted != 0 {
					t.Errorf("stats %+v", s)
				}
				if got := a.lines("peer refused", "reason="+c.reason); got != 1 {
					t.Errorf("%d lines, want 1: %s", got, a.log)
				}
			})
		})
	}
}

// TestOutgoingRefused has each of them answer a daemon that dials.
func TestOutgoingRefused(t *testing.T) {
	for _, c := range refusals {
		if c.name == "older" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *network) {
				a := n.start(t, helloOf(1, "eu", "a"), nil)
				g := greetingFrom(helloOf(2, "us", "b"))
				c.mend(&g)
				n.impersonate(t, "b:7947", g)
				a.Targets([]Target{{Addr: "b:7947", Region: "us"}})
				time.Sleep(noticeEach - time.Second)
				synctest.Wait()
				var refused *Refused
				s := a.outgoing("b:7947")
				if !errors.As(s.Err, &refused) || refused.Reason != c.reason || refused.ByPeer ||
					!strings.Contains(refused.Text, c.text) {
					t.Fatalf("stream %+v, want it refused for %s: %s", s, c.reason, c.text)
				}
				if got := a.Stats().Refused[c.reason]; got < 10 || got > s.Attempts {
					t.Errorf("%d refused of %d attempts", got, s.Attempts)
				}
				if got := a.lines("peer refused", "reason="+c.reason, "addr=b:7947"); got != 1 {
					t.Errorf("%d lines, want 1: %s", got, a.log)
				}
				if a.happened() != "" {
					t.Errorf("events %q", a.happened())
				}
			})
		})
	}
}

// TestBothSidesReportTheReason has two daemons of different clusters.
func TestBothSidesReportTheReason(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		b := n.start(t, helloOf(2, "us", "b"), func(c *Config) { c.Fingerprints = secrets(1) })
		a.Targets([]Target{to(b)})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		var refused *Refused
		if err := a.outgoing(b.addr).Err; !errors.As(err, &refused) || refused.Reason != ReasonSecret || !refused.ByPeer {
			t.Errorf("a knows %v", err)
		}
		if a.Stats().RejectedPeers[ReasonSecret] == 0 || b.Stats().Refused[ReasonSecret] == 0 {
			t.Errorf("stats of a %+v, of b %+v", a.Stats(), b.Stats())
		}
		if a.lines("a peer rejects this daemon", "us/b (b:7947) refuses eu/a (a:7947)") != 1 {
			t.Errorf("log of a: %s", a.log)
		}
		if b.lines("peer refused", "us/b (b:7947) refuses eu/a (a:7947)") != 1 {
			t.Errorf("log of b: %s", b.log)
		}
	})
}

func TestOtherRegion(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		b := n.start(t, helloOf(2, "us", "b"), nil)
		a.Targets([]Target{{Addr: b.addr, Region: "ap"}})
		time.Sleep(time.Second)
		synctest.Wait()
		var refused *Refused
		err := a.outgoing(b.addr).Err
		if !errors.As(err, &refused) || refused.Reason != ReasonRegion ||
			!strings.Contains(refused.Text, `in region "us", and its address is one of region "ap"`) {
			t.Errorf("a knows %v", err)
		}
		a.Targets([]Target{{Addr: b.addr}})
		synctest.Wait()
		if got := a.outgoing(b.addr).State; got != StateUp {
			t.Errorf("without a region to expect the stream is %s", got)
		}
	})
}

func TestOwnAddress(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		a.Targets([]Target{to(a)})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := a.lines("it is the daemon itself"); got > 2 {
			t.Errorf("%d lines in 10 minutes: %s", got, a.log)
		}
		if a.Stats().Refused[ReasonSelf] == 0 || a.happened() != "" {
			t.Errorf("stats %+v, events %q", a.Stats(), a.happened())
		}
	})
}

// TestNoHello opens streams and sends nothing, or another item than a hello.
func TestNoHello(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		mute := n.open(t, a)
		hasty := n.open(t, a)
		if err := hasty.SendMsg(&item{kind: kindFrame, body: []byte("frame")}); err != nil {
			t.Fatal(err)
		}
		for _, stream := range []peerStream{mute, hasty} {
			var refused *Refused
			if err := end(stream); !errors.As(err, &refused) || refused.Reason != ReasonHello {
				t.Errorf("the stream ended with %v", err)
			}
		}
		if got := a.Stats().Refused[ReasonHello]; got != 2 {
			t.Errorf("%d refused, want 2", got)
		}
		if a.waiting != 0 {
			t.Errorf("%d streams are still to say hello", a.waiting)
		}
	})
}

func TestRefusalsOfPeersAreBounded(t *testing.T) {
	r := printable(strings.Repeat("\x1b\xff\n", 1000))
	if len(r) > 3*maxText+3 || strings.ContainsAny(r, "\x1b\n") {
		t.Errorf("%d bytes: %q", len(r), r)
	}
}

// TestFull fills a host with streams that have sent no hello yet.
func TestFull(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		a.Host.mu.Lock()
		a.waiting = maxAccepted
		a.Host.mu.Unlock()
		var refused *Refused
		if err := end(n.open(t, a)); !errors.As(err, &refused) || refused.Reason != ReasonFull {
			t.Errorf("the stream ended with %v", err)
		}
		a.Host.mu.Lock()
		a.waiting = 0
		a.Host.mu.Unlock()
		n.greet(t, a, helloOf(2, "us", "b"))
		if got := a.Stats().Accepted; got != 1 {
			t.Errorf("%d accepted", got)
		}
	})
}

// TestDecodeMembers reads lists as a peer could send them.
func TestDecodeMembers(t *testing.T) {
	one, two := helloOf(1, "eu", "a").Member, helloOf(2, "eu", "b").Member
	body, _ := encodeMembers([]gossip.Member{two, one})
	if got, err := decodeMembers(body, "eu"); err != nil || len(got) != 2 || got[0] != one || got[1] != two {
		t.Errorf("got %v, error %v", got, err)
	}
	if got, err := decodeMembers(nil, "eu"); err != nil || len(got) != 0 {
		t.Errorf("an empty list is %v, error %v", got, err)
	}
	for name, b := range map[string][]byte{
		"other region":  body,
		"twice":         append(append([]byte(nil), body...), body...),
		"cut":           body[:len(body)-1],
		"empty members": []byte(strings.Repeat("\x0a\x00", 10)),
		"another field": {0x12, 0},
	} {
		region := "eu"
		if name == "other region" {
			region = "us"
		}
		if got, err := decodeMembers(b, region); err == nil {
			t.Errorf("%s: took %v", name, got)
		}
	}
	var many []gossip.Member
	for i := range maxMembers + 5 {
		m := one
		m.ID += crdt.Incarnation(i)
		many = append(many, m)
	}
	body, left := encodeMembers(many)
	if got, err := decodeMembers(body, "eu"); err != nil || len(got) != maxMembers || left != 5 {
		t.Errorf("%d members, %d left out, error %v", len(got), left, err)
	}
	more, _ := encodeMembers(many[maxMembers:])
	if _, err := decodeMembers(append(body, more...), "eu"); err == nil {
		t.Error("took a list beyond the bound")
	}
}
