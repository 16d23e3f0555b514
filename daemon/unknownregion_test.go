package daemon

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/daemon/regions"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/gossip/swim"
)

// intrudeAs starts an intruder of a region at an address of its own.
func (w *world) intrudeAs(region string, n int) *intruder {
	w.t.Helper()
	m := &intruder{w: w, ip: fmt.Sprintf("10.9.%d.%d", n/200, 1+n%200)}
	m.hello = w.intruderHello(region, m.ip, n)
	m.stream(link.Config{Self: func() link.Hello { return m.hello }, Dial: w.fabric.dialer(m.ip), Handler: m})
	return m
}

func (w *world) intruderHello(region, ip string, n int) link.Hello {
	return link.Hello{
		Member: gossip.Member{
			Peer: gossip.Peer{ID: crdt.Incarnation(0xbad00 + n), Name: "mallory", Region: region}, Addr: ip + ":7947", Build: "test",
		},
		Shards: worldShards, Rules: w.rules.Hash(),
	}
}

// sumIn returns the cell of a sum of a region.
func sumIn(region string, like gossip.Cell, hits uint64) gossip.Cell {
	like.Kind, like.Incarnation, like.Value = gossip.RegionSum, gossip.RegionIncarnation(region), crdt.PN{P: hits}
	return like
}

// TestUnknownRegion: the counts of a region that neither the settings nor the
// record have are dropped. It has no state, and is forgotten.
func TestUnknownRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 100, 2, "us", "eu")
		w.within(20*time.Second, "all are connected", w.whole)
		us := w.residents[0]
		cell := us.cellOf("x")
		m := w.intrudeAs("nowhere", 0)
		for range 5 {
			m.send(us, m.frame(us, sumIn("nowhere", cell, 1<<40)))
			time.Sleep(time.Second)
		}
		if !us.hits(1, "user", "x") || us.remaining("user", "x") != 98 {
			t.Errorf("%d remain after two hits of 100", us.remaining("user", "x"))
		}
		if n := us.known.Refused()[string(regions.CandidateFrame)]; n == 0 {
			t.Error("no frame is counted")
		}
		if got := us.lines("an unlisted region sends counts", "nowhere"); len(got) != 1 {
			t.Errorf("logged: %v", got)
		}
		for _, l := range us.engine.Links(us.engine.Now()) {
			if l.Peer.Region == "nowhere" {
				t.Error("it is a peer of the engine")
			}
		}
		m.host.Close()
		time.Sleep(2 * regions.ForgetAfter)
		us.mu.Lock()
		defer us.mu.Unlock()
		if us.dir.regions["nowhere"] != nil || len(us.dir.targets()) != 3 {
			t.Errorf("regions %v, targets %v", us.dir.regions, us.dir.targets())
		}
	})
}

// TestManyUnknownRegions: made-up regions keep out no region of the settings,
// and those beyond a few are refused.
func TestManyUnknownRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := emptyWorld(t, 100, 1, "us", "eu")
		us, eu := w.residents[0], w.residents[1]
		us.start()
		for i := range 70 {
			w.intrudeAs(fmt.Sprint("nowhere-", i), i)
		}
		w.within(20*time.Second, "others are refused", func() bool {
			return us.host.Stats().Refused[link.ReasonRegion] >= 70-regions.MaxCandidates
		})
		if got := us.lines("peer refused", "reason=region", "neither in its settings nor in the record"); len(got) == 0 {
			t.Error("no line says why")
		}
		us.mu.Lock()
		if n := len(us.dir.regions); n > regions.MaxCandidates+1 {
			t.Errorf("%d regions", n)
		}
		us.mu.Unlock()
		eu.start()
		w.within(20*time.Second, "the region of the settings is there", w.whole)
		eu.hits(7, "visitor", "x")
		w.within(5*time.Second, "its hits count", func() bool { return us.remaining("visitor", "x") == 93 })
	})
}

// TestCandidates: a region that the settings of others do not have joins by a
// command. Until then its counts are not those of the cluster.
func TestCandidates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newControlWorld(t, 1, []string{"us-0", "eu-0"}, "us", "eu", "ap")
		us, eu, ap := w.find("us-0"), w.find("eu-0"), w.find("ap-0")
		delete(us.contacts, "ap")
		delete(eu.contacts, "ap")
		us.start()
		eu.start()
		w.within(20*time.Second, "two regions are connected", func() bool { return w.met("us-0", 1) && w.met("eu-0", 1) })
		w.init("us-0", "us", "eu")
		w.within(30*time.Second, "both have the record", func() bool { return w.equal(1) })
		ap.start()
		w.within(20*time.Second, "the new daemon has the record", func() bool { return w.equal(1) })
		ap.hits(7, "visitor", "x")
		time.Sleep(5 * time.Second)
		if n := us.remaining("visitor", "x"); n != 1_000 {
			t.Errorf("%d remain: hits of a region that is not in the cluster count", n)
		}
		var err error
		w.loops["us-0"].Do(func(n *control.Node) {
			_, err = n.Submit(control.Request{Author: "test", Change: control.Change{
				Region: &control.RegionChange{Op: control.AddRegion, Name: "ap", Weight: 200_000},
			}})
		})
		if err != nil {
			t.Fatal(err)
		}
		w.within(20*time.Second, "the region is added", func() bool { return w.equal(2) })
		w.within(20*time.Second, "its hits count", func() bool { return us.remaining("visitor", "x") == 993 && eu.remaining("visitor", "x") == 993 })
	})
}

// TestNetworksOfARegion: addresses that peers report outside of the networks of
// their region are not dialed, and are no members.
func TestNetworksOfARegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := emptyWorld(t, 100, 1, "us", "eu")
		networks := regions.Networks{"eu": {netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("10.9.0.0/24")}}
		w.mend = func(_ *resident, c *clusterConfig) { c.networks = networks }
		w.start()
		us := w.residents[0]
		w.within(20*time.Second, "all are connected", w.whole)
		m := w.intrude("eu", func(_ *link.Config, c *swim.Config) { c.Keys = [][]byte{[]byte("fedcba9876543210")} })
		m.send(us, m.frame(us))
		list := []gossip.Member{m.hello.Member}
		for i, addr := range []string{"10.2.7.7:22", "10.1.0.1:80", "192.168.0.1:443", "169.254.169.254:80", "127.0.0.1:6070", "[::1]:6070"} {
			list = append(list, gossip.Member{
				Peer: gossip.Peer{ID: crdt.Incarnation(0xf00 + i), Name: fmt.Sprint("far-", i), Region: "eu"}, Addr: addr, Build: "test",
			})
		}
		w.within(10*time.Second, "the intruder is a peer", func() bool {
			m.send(us, m.frame(us))
			return us.knows("mallory")
		})
		m.host.SendMembers(list)
		w.within(10*time.Second, "the address in the network is dialed", func() bool { return us.dials("10.2.7.7:22") })
		for _, addr := range []string{"10.1.0.1:80", "192.168.0.1:443", "169.254.169.254:80", "127.0.0.1:6070", "[::1]:6070"} {
			if us.dials(addr) {
				t.Errorf("%s is dialed", addr)
			}
			if got := us.lines("an address that peers report is not dialed", addr); len(got) > 1 {
				t.Errorf("%s: %v", addr, got)
			}
		}
		if us.knows("far-1") || !us.knows("far-0") {
			t.Error("the members do not follow the networks")
		}
		if n := us.known.Refused()[string(regions.Address)]; n != 5 {
			t.Errorf("%d addresses are counted, want 5", n)
		}
		if got := us.lines("an address that peers report is not dialed", "regions.eu.cidrs"); len(got) != 1 {
			t.Errorf("logged: %s", strings.Join(got, ""))
		}
	})
}

// dials reports whether a daemon has an address among its targets.
func (r *resident) dials(addr string) bool {
	return slices.ContainsFunc(r.host.Streams(), func(s link.Stream) bool { return !s.Incoming && s.Addr == addr })
}
