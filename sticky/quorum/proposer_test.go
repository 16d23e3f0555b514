package quorum

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// bench is a proposer at daemon a of three voters a, b and c, incarnations 1 to
// 3.
type bench struct {
	t    *testing.T
	k    Proposer
	view *route.Routing
	sent map[crdt.Incarnation]sticky.Accept
}

func newBench(t *testing.T) *bench {
	return &bench{t: t, k: Proposer{Term: 1}, view: threeVoters(1, 1, 2, 3)}
}

// threeVoters is the view of a, whose region has voters of these incarnations.
func threeVoters(number uint64, incarnations ...crdt.Incarnation) *route.Routing {
	l := &route.Layout{Number: number, Regions: []route.Region{{Name: "r", Weight: 1, Replicas: []string{"a", "b", "c"}}}}
	var live route.Peers
	for i, id := range incarnations {
		if id != 0 {
			live = append(live, route.Peer{ID: id, Name: daemonName(i), Region: "r", Ready: true})
		}
	}
	return route.New(l, "r", "a", 1, live)
}

func hits(n uint64) sticky.Watermarks { return sticky.Watermarks{{Window: 100, Amount: n, End: 1_000}} }

func (b *bench) want(consumed, to uint64) { b.k.Want(1, 500, hits(consumed), hits(to)) }

// accepts returns the recipients of the proposer at an instant.
func (b *bench) accepts(at time.Duration) string {
	b.sent = map[crdt.Incarnation]sticky.Accept{}
	b.k.Accepts(at, b.view, func(id crdt.Incarnation, r sticky.Accept) { b.sent[id] = r })
	out := ""
	for id := crdt.Incarnation(1); id < 9; id++ {
		if r, ok := b.sent[id]; ok {
			out += fmt.Sprintf("%d:%d ", id, r.Watermarks.Amount(100))
		}
	}
	return out
}

func (b *bench) vote(i int, change func(*sticky.Accepted)) Outcome {
	v := sticky.Accepted{Ballot: b.k.Ballot(), Seq: b.k.seq, Voter: route.NameHash(daemonName(i)), OK: true}
	if change != nil {
		change(&v)
	}
	return b.k.Accepted(&v, b.view)
}

// newHolder returns a bench whose proposer holds some hits.
func newHolder(t *testing.T, held uint64) *bench {
	t.Helper()
	b := newBench(t)
	b.want(0, held)
	b.accepts(0)
	b.vote(0, nil)
	b.expect("held", b.vote(1, nil), Chosen)
	return b
}

func (b *bench) expect(what string, got, want any) {
	b.t.Helper()
	if got != want {
		b.t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

func refuses(why sticky.Reason, round, held uint64) func(*sticky.Accepted) {
	return func(v *sticky.Accepted) {
		v.OK, v.Reason, v.Promised, v.Held = false, why, sticky.Ballot{Round: round, Owner: 9}, hits(held)
	}
}

func TestProposerAccepts(t *testing.T) {
	b := newBench(t)
	b.want(0, 20)
	b.expect("at once", b.accepts(0), "1:20 2:20 3:20 ")
	b.expect("too early", b.accepts(49*time.Millisecond), "")
	b.expect("one vote", b.vote(1, nil), Pending)
	b.expect("the same again", b.vote(1, nil), Pending)
	b.expect("again", b.accepts(50*time.Millisecond), "1:20 3:20 ")
	b.want(0, 30)
	b.want(0, 40)
	b.expect("of a stranger", b.vote(5, nil), Pending)
	b.expect("of another raise", b.vote(2, func(v *sticky.Accepted) { v.Seq++ }), Pending)
	b.expect("of another ballot", b.vote(2, func(v *sticky.Accepted) { v.Ballot.Round++ }), Pending)
	b.expect("of another keeper", b.vote(2, func(v *sticky.Accepted) { v.Ballot.Term++ }), Pending)
	b.expect("two votes", b.vote(2, nil), Chosen)
	b.expect("held", b.k.Held().Amount(100), uint64(20))
	b.expect("the last want follows", b.accepts(60*time.Millisecond), "1:40 2:40 3:40 ")
	b.want(5, 30)
	b.expect("no more is queued", len(b.k.next.watermarks) > 0, false)
	b.vote(0, nil)
	b.expect("two votes", b.vote(1, nil), Chosen)
	b.expect("busy", b.k.Busy(), false)
	b.want(5, 40)
	b.expect("held already", b.k.Busy(), false)
}

func TestProposerLost(t *testing.T) {
	b := newHolder(t, 20)
	b.want(10, 40)
	b.accepts(time.Second)
	b.expect("one no", b.vote(1, refuses(sticky.Outvoted, 7, 30)), Pending)
	b.expect("two", b.vote(2, refuses(sticky.Outvoted, 5, 25)), Lost)
	b.expect("nothing held", len(b.k.Held()), 0)
	b.expect("known", b.k.Known().Amount(100), uint64(30))
	b.expect("idle", b.k.Busy(), false)
	b.want(30, 50)
	b.expect("ballot", b.k.Ballot(), sticky.Ballot{Round: 8, Owner: 1, Term: 1})
	b.expect("raises", b.accepts(2*time.Second), "1:50 2:50 3:50 ")
	b.expect("it knows", b.sent[2].Known.Amount(100), uint64(30))

	b = newBench(t)
	b.want(0, 20)
	b.accepts(0)
	b.vote(0, nil)
	b.expect("no, c may still vote", b.vote(1, refuses(sticky.Outvoted, 7, 30)), Pending)
	b.accepts(AcceptAgain)
	b.expect("no, and c is silent", b.vote(1, refuses(sticky.Outvoted, 7, 30)), Lost)
}

// TestProposerLostToAnother: the voter that refuses has none of the watermarks,
// and the owner counts what it held nevertheless.
func TestProposerLostToAnother(t *testing.T) {
	b := newHolder(t, 20)
	b.want(10, 40)
	b.accepts(time.Second)
	b.expect("one no", b.vote(2, refuses(sticky.Outvoted, 7, 0)), Pending)
	b.accepts(time.Second + AcceptAgain)
	b.expect("and again", b.vote(2, refuses(sticky.Outvoted, 7, 0)), Lost)
	b.expect("known", b.k.Known().Amount(100), uint64(20))
}

func TestProposerStuck(t *testing.T) {
	b := newBench(t)
	b.view = threeVoters(1, 1, 0, 0)
	b.want(0, 20)
	b.expect("to the living", b.accepts(0), "1:20 ")
	b.expect("alone", b.vote(0, nil), Stuck)
	b.view = threeVoters(1, 1, 0, 4)
	b.expect("to who came back", b.accepts(AcceptAgain), "4:20 ")
	b.expect("cannot", b.vote(2, refuses(sticky.NotVoting, 0, 0)), Stuck)
	b.expect("goes on", b.accepts(2*AcceptAgain), "4:20 ")
	b.expect("can now", b.vote(2, nil), Chosen)

	b.want(20, 40)
	for i := range giveUp {
		if b.accepts(time.Duration(10+i) * time.Second); !b.k.Busy() {
			t.Fatalf("given up after %d attempts", i)
		}
	}
	b.accepts(time.Hour)
	b.expect("given up", b.k.Busy(), false)
	b.want(20, 40)
	b.accepts(2 * time.Hour)
	b.expect("ended", b.vote(2, refuses(sticky.Ended, 0, 0)), Stuck)
	b.expect("dropped", b.k.Busy(), false)
	b.expect("still held", b.k.Held().Amount(100), uint64(20))

	b.want(20, 60)
	b.accepts(3 * time.Hour)
	b.expect("no room", b.vote(2, refuses(sticky.Full, 0, 0)), Crowded)
	b.expect("dropped without room", b.k.Busy(), false)
}

func TestProposerGenerations(t *testing.T) {
	b := newBench(t)
	b.want(0, 20)
	b.accepts(0)
	c := route.NameHash("c")
	b.expect("store number 0 of c", b.vote(2, nil), Pending)
	b.expect("b knows store number 2", b.vote(1, func(v *sticky.Accepted) { v.Generations = route.Generations{{Voter: c, Generation: 2}} }), Pending)
	b.expect("again to a and c", b.accepts(AcceptAgain), "1:20 3:20 ")
	b.expect("store number 1 of c", b.vote(2, func(v *sticky.Accepted) { v.Generations = route.Generations{{Voter: c, Generation: 1}} }), Pending)
	b.expect("store number 2 of c", b.vote(2, func(v *sticky.Accepted) { v.Generations = route.Generations{{Voter: c, Generation: 2}} }), Chosen)
}

func TestProposerLayout(t *testing.T) {
	b := newHolder(t, 20)
	b.want(20, 40)
	b.accepts(time.Second)
	b.vote(0, nil)
	old := b.k.seq
	b.view = threeVoters(2, 1, 2, 3)
	b.expect("a vote under the former layout", b.vote(1, nil), Pending)
	b.expect("anew", b.accepts(time.Second+time.Millisecond), "1:40 2:40 3:40 ")
	b.expect("a late vote", b.vote(1, func(v *sticky.Accepted) { v.Seq = old }), Pending)
	b.expect("held as before", b.k.Held().Amount(100), uint64(20))
	b.vote(1, nil)
	b.expect("held by the new ones", b.vote(2, nil), Chosen)
}

func TestProposerEnded(t *testing.T) {
	b := newHolder(t, 20)
	next := sticky.Watermarks{{Window: 100, Amount: 30, End: 1_000}, {Window: 200, Amount: 5, End: 2_000}}
	b.k.Want(1, 1_500, hits(20), next)
	b.expect("the ended label is left out", len(b.k.flight.watermarks), 1)
	b.expect("and not held any more", len(b.k.Held()), 0)
	b.accepts(time.Second)
	b.vote(0, nil)
	b.expect("the other", b.vote(1, nil), Chosen)
	b.want(0, 50) // the clock went back
	b.expect("never again", b.k.Busy(), false)
	b.k.Want(7, 1_500, nil, next)
	b.expect("as another incarnation", b.k.Ballot(), sticky.Ballot{Round: 1, Owner: 7, Term: 1})
}

// TestProposerBadVotes checks that no vote makes a proposer panic or grow.
func TestProposerBadVotes(t *testing.T) {
	b := newBench(t)
	b.want(0, 20)
	b.accepts(0)
	many := make(route.Generations, 100)
	for i := range many {
		many[i].Voter = uint64(i)
	}
	for _, change := range []func(*sticky.Accepted){
		func(v *sticky.Accepted) { v.Generations = many },
		func(v *sticky.Accepted) {
			v.OK, v.Reason, v.Held = false, sticky.Outvoted, make(sticky.Watermarks, sticky.MaxWatermarks+1)
		},
		func(v *sticky.Accepted) {
			v.OK, v.Reason, v.Held = false, sticky.Outvoted, sticky.Watermarks{{Window: 2}, {Window: 1}}
		},
	} {
		b.expect("vote", b.vote(1, change), Pending)
		b.expect("votes", len(b.k.cast), 0)
	}
	b.expect("no without a reason", b.vote(1, func(v *sticky.Accepted) { v.OK = false }), Pending)
	b.vote(1, refuses(sticky.Outvoted, sticky.MaxRound+2, 1))
	b.expect("lost", b.vote(2, refuses(sticky.Outvoted, 3, 1)), Lost)
	b.want(1, 20)
	b.expect("round", b.k.Ballot().Round, uint64(4))
	if !slices.Equal(b.k.Known(), hits(1)) {
		t.Errorf("known %v", b.k.Known())
	}
}

func TestProposerAllocs(t *testing.T) {
	b := newBench(t)
	n := uint64(0)
	got := testing.AllocsPerRun(1_000, func() {
		n += 20
		b.want(n-20, n)
		b.k.Accepts(time.Duration(n)*time.Second, b.view, func(crdt.Incarnation, sticky.Accept) {})
		b.vote(0, nil)
		b.vote(1, nil)
	})
	if got > 8 {
		t.Errorf("%.0f allocations a raise: want at most 8", got)
	}
}
