package control

import (
	"strings"
	"testing"
	"time"
)

// A daemon that leaves waits for its vote to go, and only where another daemon
// can take it.
func TestHandsOver(t *testing.T) {
	w := begin(t, "b-1")
	w.run(time.Second)
	a, b := w.find("a-0"), w.find("b-0")
	if b.node.Status().HandsOver {
		t.Error("a daemon that stays hands its vote over")
	}
	b.node.Leave()
	if !b.node.Status().HandsOver {
		t.Error("b-0 does not hand its vote over to b-1")
	}
	w.until("b-0 has no vote", 20*time.Second, func() bool { return !b.node.Status().HandsOver })
	if !w.votes("b-1") || w.votes("b-0") {
		t.Errorf("b-0 votes %v, b-1 votes %v; want b-1 alone", w.votes("b-0"), w.votes("b-1"))
	}
	w.run(time.Second)
	a.node.Leave()
	if a.node.Status().HandsOver {
		t.Error("a-0 waits for its vote to go, and region a has no other daemon")
	}
}

// A dry run changes nothing, and is refused as a recovery is.
func TestRecoverDryRun(t *testing.T) {
	w := begin(t)
	n := w.find("a-0").node
	if err := n.Recover(RecoverRequest{DryRun: true}); err == nil || !strings.Contains(err.Error(), "3 of 3 voters are live") {
		t.Errorf("got %v, want a refusal while the majority is live", err)
	}
	if err := n.Recover(RecoverRequest{DryRun: true, Stopped: true}); err != nil {
		t.Error(err)
	}
	if n.Record().Version.Recovery.Number != 0 || n.recovering != nil {
		t.Error("a check began a recovery")
	}
}

// The status names the cluster and the recovery of a peer.
func TestPeerStatus(t *testing.T) {
	w := begin(t)
	w.add("a", "a-1", false)
	n := w.find("a-0").node
	w.until("a-1 is heard", 10*time.Second, func() bool { p := n.Status().Peers; return len(p) == 3 && p[2].Age >= 0 })
	for _, p := range n.Status().Peers {
		if p.Foreign != 0 || p.Split || p.Sender.Durable == (p.Name == "a-1") {
			t.Errorf("%+v", p)
		}
	}
	p := n.peers[0]
	p.version.Recovery.Random++
	if all := n.Status().Peers; !all[0].Split || all[1].Split {
		t.Errorf("%+v: want a split from the first peer alone", all)
	}
	m := Message{From: p.Address, To: n.address, Statement: Statement{Cluster: n.record.Cluster.ID + 1}}
	if err := n.Receive(w.now, 0, &m); err != nil {
		t.Fatal(err)
	}
	if all := n.Status().Peers; all[0].Foreign != m.Cluster {
		t.Errorf("%+v: want cluster %v", all[0], m.Cluster)
	}
}

// A change of a region is settled once the rights agent states that its epoch
// is.
func TestSettled(t *testing.T) {
	w := begin(t)
	w.run(5 * time.Second)
	a := w.find("a-0")
	n := a.node
	if !n.Status().Settled {
		t.Error("the shares of the founding are not settled")
	}
	w.submit(a, Change{Region: &RegionChange{Op: WeighRegion, Name: "b", Weight: 100_000}})
	newest, err := n.Record().Newest()
	if err != nil || n.Status().Settled {
		t.Errorf("%v, settled %v: want a pending epoch", err, n.Status().Settled)
	}
	RightsOf(n).Settled(newest.ID)
	if !n.Status().Settled {
		t.Error("the newest epoch is settled, and the status states that it is not")
	}
}
