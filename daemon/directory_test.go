package daemon

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
)

// member returns a daemon whose address is its name, and whose region is the
// first part of its name.
func member(id uint64, name string) gossip.Member {
	region, _, _ := strings.Cut(name, "-")
	return gossip.Member{Peer: gossip.Peer{ID: crdt.Incarnation(id), Name: name, Region: region}, Addr: name}
}

func says(id uint64, name string) link.Hello { return link.Hello{Member: member(id, name)} }

func names(d *directory) string {
	var out []string
	for _, m := range d.members() {
		out = append(out, m.Name+"#"+m.ID.String()[15:])
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func addrs(d *directory) string {
	var out []string
	for _, t := range d.targets() {
		if t.WAN != (t.Region != d.self.Region) {
			return "a target of " + t.Region + " with WAN wrong"
		}
		out = append(out, t.Addr)
	}
	return strings.Join(out, " ")
}

// TestDirectory follows the directory of one daemon.
func TestDirectory(t *testing.T) {
	d := newDirectory(member(1, "us-1"), map[string][]string{"eu": {"eu-1"}})
	step := func(what, wantNames, wantAddrs string) {
		t.Helper()
		if got := names(d); got != wantNames {
			t.Errorf("%s: members %s, want %s", what, got, wantNames)
		}
		if got := addrs(d); got != wantAddrs {
			t.Errorf("%s: targets %s, want %s", what, got, wantAddrs)
		}
	}
	step("at start", "us-1#1", "eu-1")

	d.own = []gossip.Member{member(1, "us-1"), member(2, "us-2")}
	step("another of the region", "us-1#1 us-2#2", "eu-1 us-2")

	d.setMembers(says(3, "eu-1"), []gossip.Member{member(4, "eu-2")})
	step("a list of whom we did not call", "us-1#1 us-2#2", "eu-1 us-2")

	d.connected("eu-1", says(3, "eu-1"))
	step("a contact answers", "eu-1#3 us-1#1 us-2#2", "eu-1 us-2")

	d.setMembers(says(3, "eu-1"), []gossip.Member{member(3, "eu-1"), member(4, "eu-2"), member(9, "ap-1"), member(8, "us-9")})
	step("it tells of its region and of others", "eu-1#3 eu-2#4 us-1#1 us-2#2", "eu-1 eu-2 us-2")

	d.connected("eu-2", says(5, "eu-2"))
	step("a newer incarnation answers itself", "eu-1#3 eu-2#5 us-1#1 us-2#2", "eu-1 eu-2 us-2")

	d.setMembers(says(5, "eu-2"), []gossip.Member{member(3, "eu-1"), member(5, "eu-2"), member(6, "eu-3")})
	d.disconnected("eu-1")
	step("what one said goes with it, others know it still", "eu-1#3 eu-2#5 eu-3#6 us-1#1 us-2#2", "eu-1 eu-2 eu-3 us-2")

	d.disconnected("eu-2")
	step("a region that is lost is kept and called", "eu-1#3 eu-2#5 eu-3#6 us-1#1 us-2#2", "eu-1 eu-2 eu-3 us-2")

	d.connected("eu-1", says(7, "eu-1"))
	step("it comes back with one daemon", "eu-1#7 us-1#1 us-2#2", "eu-1 us-2")

	if !d.introduce(member(10, "ap-1")) || d.introduce(member(10, "ap-1")) || d.introduce(member(11, "us-3")) {
		t.Error("a caller of another region is news once, one of our own never")
	}
	step("a caller is called back", "eu-1#7 us-1#1 us-2#2", "ap-1 eu-1 us-2")
}

// TestDirectoryIsBounded: the directory stays bounded for any input of peers.
func TestDirectoryIsBounded(t *testing.T) {
	d := newDirectory(member(1, "us-1"), nil)
	for i := range uint64(1_000) {
		m := member(i+2, "eu-1")
		m.Addr = m.ID.String()
		m.Region = m.Addr
		d.introduce(m)
		m.Region = "eu"
		d.introduce(m)
	}
	if len(d.regions) > maxRegions || len(d.targets()) > maxRegions*maxIntroduced {
		t.Errorf("%d regions, %d targets", len(d.regions), len(d.targets()))
	}
}

// A daemon connects before it is ready, and its stream stays up.
func TestDirectoryTakesOverThatADaemonBecameReady(t *testing.T) {
	d := newDirectory(member(1, "us-1"), nil)
	d.connected("eu-1", says(2, "eu-1"))
	now := member(2, "eu-1")
	now.Ready = true
	d.setMembers(says(2, "eu-1"), []gossip.Member{now})
	if got := d.members()[1]; !got.Ready {
		t.Errorf("%v is not ready, though it says so", got)
	}
}

// The daemon that answers decides the region of an address. An introduced
// daemon that has answered is known by the lists of its region only.
func TestDirectoryForgetsWhatWasWrong(t *testing.T) {
	d := newDirectory(member(1, "us-1"), nil)
	typo := member(2, "eu-1")
	typo.Region = "eu-wset"
	d.introduce(typo)
	d.connected("eu-1", link.Hello{Member: typo})
	d.disconnected("eu-1")
	d.introduce(member(3, "eu-1"))
	d.connected("eu-1", says(3, "eu-1"))
	if len(d.regions) != 1 || names(d) != "eu-1#3 us-1#1" {
		t.Errorf("regions %v, members %s", d.regions, names(d))
	}
	for range 100 {
		if got := d.targets(); len(got) != 1 || got[0].Region != "eu" {
			t.Fatalf("targets %+v", got)
		}
	}

	for i := range uint64(40) {
		pod := member(100+i, fmt.Sprint("eu-pod", i))
		d.introduce(pod)
		d.connected(pod.Addr, link.Hello{Member: pod})
		d.disconnected(pod.Addr)
	}
	if got := addrs(d); got != "eu-1" {
		t.Errorf("targets %s after 40 that came and went", got)
	}
}

// A daemon with two addresses stays connected while it answers at one.
func TestDirectoryOfADaemonAtTwoAddresses(t *testing.T) {
	d := newDirectory(member(1, "us-1"), map[string][]string{"eu": {"balancer"}})
	d.connected("balancer", says(2, "eu-1"))
	d.setMembers(says(2, "eu-1"), []gossip.Member{member(2, "eu-1"), member(3, "eu-2")})
	d.connected("eu-1", says(2, "eu-1"))
	if got := names(d); got != "eu-1#2 eu-2#3 us-1#1" {
		t.Errorf("members %s when it answers at another address", got)
	}
	d.disconnected("balancer")
	d.setMembers(says(2, "eu-1"), []gossip.Member{member(2, "eu-1")})
	if got := names(d); got != "eu-1#2 us-1#1" {
		t.Errorf("members %s, without eu-2 said over the other stream", got)
	}
}

// The readiness that a connected daemon of the region reports takes precedence
// over that of membership.
func TestDirectoryOfOwnRegion(t *testing.T) {
	d := newDirectory(member(1, "us-1"), nil)
	d.own = []gossip.Member{member(1, "us-1"), member(2, "us-2")}
	ready := func(what string, want bool) {
		t.Helper()
		if all := d.members(); len(all) != 2 || all[1].Ready != want {
			t.Errorf("%s: %+v, want the second ready: %v", what, all, want)
		}
	}
	yes := member(2, "us-2")
	yes.Ready = true
	ready("before it answers", false)
	d.connected("us-2", says(2, "us-2"))
	d.setMembers(says(2, "us-2"), []gossip.Member{member(1, "us-1"), yes})
	ready("it says that it is", true)
	d.disconnected("us-2")
	ready("after it answered", false)
	d.own[1].Ready = true
	ready("by membership", true)
	d.connected("us-2", says(2, "us-2"))
	ready("it says that it is not", false)
}
