package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/node"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/sticky/route"
)

// TestRestartedVoterIsLive: after a restart of a voter its former process may
// still be among the peers, silent.
func TestRestartedVoterIsLive(t *testing.T) {
	voter := control.ID{2}
	peer := func(age time.Duration, live bool) control.PeerStatus {
		return control.PeerStatus{
			Peer: control.Peer{Region: "us", Name: "us-0"}, Age: age, Live: live, Sender: control.Sender{ID: voter},
		}
	}
	s := ControlState{Record: &control.Record{Voters: []control.Voter{{Daemon: voter, Region: "us"}}}}
	s.Status.Peers = []control.PeerStatus{peer(20*time.Second, false), peer(time.Second, true), peer(-1, false)}
	if live, missing := s.LiveVoters(); live != 1 || len(missing) > 0 {
		t.Errorf("%d live, missing %q: want the voter live", live, missing)
	}
	s.Status.Peers[1].Live = false
	if live, missing := s.LiveVoters(); live != 0 || len(missing) != 1 {
		t.Errorf("%d live, missing %q: want the voter missing", live, missing)
	}
}

// TestStateOfSilentPeer: a page for a recovery shows which peers are not live.
func TestStateOfSilentPeer(t *testing.T) {
	for want, p := range map[string]control.PeerStatus{
		"live":     {Age: time.Second, Live: true},
		"not live": {Age: time.Minute},
		"starting": {Age: time.Second, Live: true, Version: control.Version{Index: 1}, Sender: control.Sender{Starting: true}},
	} {
		if got := peerState(&p); got != want {
			t.Errorf("%+v: %q, want %q", p, got, want)
		}
	}
}

// fixed is a control log whose state does not change.
type fixed struct {
	Control
	state ControlState
}

func (f fixed) State() ControlState { return f.state }

// TestRemovedRegionIsNotPartitioned: a region without reachable daemons is
// partitioned while the control log has it, or has not begun.
func TestRemovedRegionIsNotPartitioned(t *testing.T) {
	of := func(regions ...control.Region) *control.Record { return &control.Record{Regions: regions} }
	us, eu := control.Region{Name: "us"}, control.Region{Name: "eu"}
	for _, tc := range []struct {
		record *control.Record
		want   bool
	}{{nil, true}, {of(eu, us), true}, {of(us), false}} {
		r := New(Config{Region: "us", Control: fixed{state: ControlState{Record: tc.record}}})
		if got := r.region("eu", nil, nil).Partitioned; got != tc.want {
			t.Errorf("%+v: partitioned %v, want %v", tc.record, got, tc.want)
		}
	}
}

// TestRecoverNamesAnother: the refusal of another name states whose record the
// command is about.
func TestRecoverNamesAnother(t *testing.T) {
	r := New(Config{Name: "us-0"})
	for yield, want := range map[bool]string{false: "is to be kept", true: "is to be given up"} {
		_, err := r.RecoverCluster(t.Context(), api.RecoverRequest{Daemon: "eu-0", Yield: yield})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("yield %v: %v, want %q", yield, err, want)
		}
	}
}

// TestRegionsOfWitness: a witness has no counts of others. A region is
// partitioned from it when no daemon there sends messages of the control log.
func TestRegionsOfWitness(t *testing.T) {
	s := ControlState{Record: &control.Record{Regions: []control.Region{{Name: "us"}, {Name: "eu"}, {Name: "ap"}}}}
	s.Status.Peers = []control.PeerStatus{
		{Peer: control.Peer{Region: "us"}, Age: time.Second, Live: true},
		{Peer: control.Peer{Region: "eu"}, Age: time.Minute},
		{Peer: control.Peer{Region: "ap"}, Age: -1},
	}
	now := time.Unix(1_700_000_000, 0).UTC()
	r := New(Config{Region: "w", Witness: true, Control: fixed{state: s}, Wall: func() time.Time { return now }})
	if g := r.region("us", nil, nil); g.Partitioned || g.PartitionedSince != nil {
		t.Errorf("%+v: want us reached", g)
	}
	if g := r.region("eu", nil, nil); !g.Partitioned || !g.PartitionedSince.Equal(now.Add(-time.Minute)) {
		t.Errorf("%+v: want eu partitioned for a minute", g)
	}
	if g := r.region("ap", nil, nil); !g.Partitioned || g.PartitionedSince != nil {
		t.Errorf("%+v: want ap partitioned", g)
	}
}

// TestStrictRecoveryWaits: what waits for the strict voters after lost ones
// names the other regions without a majority of theirs.
func TestStrictRecoveryWaits(t *testing.T) {
	layout := &route.Layout{Number: 1, Regions: []route.Region{
		{Name: "ap", Replicas: []string{"ap-0"}},
		{Name: "eu", Replicas: []string{"eu-0", "eu-1"}},
		{Name: "us", Replicas: []string{"us-0", "us-1"}},
	}}
	lost := []control.LostVoters{{Region: "us", Number: 1}}
	s := ControlState{Record: &control.Record{
		Layouts:  control.Layouts{Active: layout, Lost: lost},
		Outcomes: []control.Outcome{{Request: 1, Version: control.Version{Index: 2}}},
	}}
	s.Status.Settled = true
	s.Status.Peers = []control.PeerStatus{
		{Peer: control.Peer{Region: "eu", Name: "eu-0"}, Live: true}, {Peer: control.Peer{Region: "eu", Name: "eu-1"}},
	}
	r := New(Config{Region: "ap", Name: "ap-0", Control: fixed{state: s}})
	a, err := ClusterCommand(r, "0000000000000001")
	want := []string{"the strict voters of region eu, of which 1 of 2 are live, want at least 2", "the strict voters after those of region us"}
	if err != nil || !a.Pending || !slices.Equal(a.Waits, want) {
		t.Errorf("%+v, %v: want it to wait for %q", a, err, want)
	}
}

// TestRegionIsNotThere: a daemon of a region that was removed, or that was not
// added yet, states it.
func TestRegionIsNotThere(t *testing.T) {
	s := ControlState{Record: &control.Record{Regions: []control.Region{{Name: "us"}}}}
	s.Status.Leader = control.ID{1}
	for region, want := range map[string]int{"us": 0, "ap": 1} {
		r := New(Config{Region: region, Control: fixed{state: s}})
		got := r.ClusterPage().Cluster.Problems
		if len(got) != want || want == 1 && !strings.Contains(got[0], "rld region add ap") {
			t.Errorf("region %s: %q, want %d", region, got, want)
		}
	}
}

// TestUnheardVoters: a daemon that hears no voter advises no recovery while
// another one of its recovery hears a majority.
func TestUnheardVoters(t *testing.T) {
	at := control.Version{Recovery: control.Recovery{Number: 1, Random: 2}, Index: 3}
	for _, tc := range []struct {
		recovery control.Recovery
		majority bool
		want     string
	}{
		{at.Recovery, true, "nothing is lost"},
		{at.Recovery, false, "run rld cluster recover"},
		{control.Recovery{Number: 1, Random: 9}, true, "run rld cluster recover"},
	} {
		s := ControlState{Record: &control.Record{Version: at, Voters: []control.Voter{{Raft: 1, Daemon: control.ID{9}, Region: "us"}}}}
		s.Status.Peers = []control.PeerStatus{{
			Peer: control.Peer{Region: "eu", Name: "eu-0"}, Live: true, Age: 1, Version: control.Version{Recovery: tc.recovery, Index: 3},
			Sender: control.Sender{ID: control.ID{1}, Majority: tc.majority},
		}}
		if got := New(Config{Region: "ap", Name: "ap-0"}).leaderless(&s); !strings.Contains(got, tc.want) {
			t.Errorf("%+v: %q", tc, got)
		}
	}
}

// TestUnelectableVoters: where live voters cannot elect a leader, a daemon
// advises a recovery, and no election goes on.
func TestUnelectableVoters(t *testing.T) {
	voters := []control.Voter{{Raft: 1, Daemon: control.ID{1}, Region: "us"}, {Raft: 2, Daemon: control.ID{2}, Region: "eu"}, {Raft: 3, Daemon: control.ID{3}, Region: "eu"}}
	s := ControlState{Record: &control.Record{Voters: voters}}
	s.Status.ID = control.ID{1}
	s.Status.Peers = []control.PeerStatus{{Peer: control.Peer{Region: "eu", Name: "eu-0"}, Live: true, Sender: control.Sender{ID: control.ID{2}}}}
	for unelectable, want := range map[bool]string{
		false: "with 2 of 3 voters live: an election takes some seconds",
		true:  "2 of 3 voters are live, and cannot elect a leader without one that is lost",
	} {
		s.Status.Unelectable = unelectable
		if got := New(Config{Region: "us", Name: "us-0"}).leaderless(&s); !strings.Contains(got, want) || s.Electing() == unelectable {
			t.Errorf("electing %v, %q: want %q", s.Electing(), got, want)
		}
	}
}

// TestInitByAWrongClock: a daemon with a wrong clock does not state from when
// on the rights of a cluster count.
func TestInitByAWrongClock(t *testing.T) {
	r := New(Config{
		Region: "ap", Name: "ap-0", Engine: &statsEngine{stats: node.Stats{ClockOff: true}},
		Control: fixed{state: ControlState{Founders: []string{"ap-0"}, Durable: true}},
		Regions: []control.FirstRegion{{Name: "ap", Weight: control.Whole}},
	})
	if _, err := r.InitCluster(api.InitRequest{}); err == nil || !strings.Contains(err.Error(), "clock") {
		t.Errorf("a cluster begins by a wrong clock: %v", err)
	}
}

// TestInitWithoutFounders: a cluster does not begin without the regions of its
// founders. Founders that only vote count.
func TestInitWithoutFounders(t *testing.T) {
	heard := func(region string, age time.Duration, witness bool) control.PeerStatus {
		return control.PeerStatus{
			Peer: control.Peer{Region: region, Name: region + "-0"}, Age: age, Live: true,
			Sender: control.Sender{Durable: true, Witness: witness},
		}
	}
	for _, tc := range []struct {
		without       string
		witness       bool
		age           time.Duration // of the message of us-0
		want, missing string
	}{
		{"us,eu", false, 1, "--without us,eu leaves 1 of 3 founders, and not eu-0, us-0: want a majority", ""},
		{"us,eu", true, 1, "", ""},
		{"us", false, 1, "", ""},
		{"eu", false, 1, "", ""},
		{"eu", false, -1, "", "1 of 3 are heard, without eu-0, and not us-0"},
	} {
		s := ControlState{Founders: []string{"ap-0", "eu-0", "us-0"}, Durable: true}
		s.Status.Peers = []control.PeerStatus{heard("us", tc.age, tc.witness), heard("eu", 1, false)}
		var regions []control.FirstRegion
		for _, name := range []string{"ap", "eu", "us"} {
			regions = append(regions, control.FirstRegion{Name: name, Weight: 1})
		}
		r := New(Config{Region: "ap", Name: "ap-0", Control: fixed{state: s}, Regions: regions, Engine: &statsEngine{}})
		out, err := r.InitCluster(api.InitRequest{Without: strings.Split(tc.without, ","), DryRun: true})
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v", tc, err)
		}
		if missing := strings.Join(out.Missing, "; "); !strings.Contains(missing, tc.missing) || (missing == "") != (tc.missing == "") && err == nil {
			t.Errorf("%+v: missing %q", tc, missing)
		}
	}
}
