package quorum

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// accepts has each voter answer an Accept of its own for a watermark of the
// current minute. It returns the voters that store it.
func (w *town) accepts() string {
	out := ""
	for i, r := range w.all {
		id := crdt.Incarnation(i + 1)
		m := sticky.Message{From: id, To: id, Number: r.Routing().Number(), Accepts: []sticky.Accept{{
			Key: crdt.Key(w.at)<<10 | 77, Ballot: sticky.Ballot{Round: 9, Owner: id, Term: uint64(w.at)}, Seq: 1,
			Watermarks: sticky.Watermarks{{Window: testNow, Amount: 5, End: testNow + w.at.Milliseconds() + 60_000}},
		}}}
		if err := r.Receive(w.at, w.now(i), &m); err != nil {
			w.t.Fatal(err)
		}
		r.Ready(w.at)
		r.Stored()
		for _, m := range r.Ready(w.at).Messages {
			if slices.ContainsFunc(m.Accepted, func(a sticky.Accepted) bool { return a.OK }) {
				out += r.cfg.Name
			}
		}
	}
	return out
}

// TestWrongClockEndsNothing lets the clock of one voter be a day ahead for
// minutes, and of all of a region, and then right again. After a change of
// layout, for which all voters copy from all others, they accept the watermarks
// of windows that are not over.
func TestWrongClockEndsNothing(t *testing.T) {
	for _, wrong := range []string{"c", "ab", "abcde"} {
		w := newTown(t)
		w.run(5)
		w.ahead = map[string]time.Duration{}
		for _, name := range strings.Split(wrong, "") {
			w.ahead[name] = 24 * time.Hour
		}
		w.run(5 * 60 * 10)
		for _, r := range w.all {
			if ended := r.meta.Ended - testNow; ended < time.Minute.Milliseconds() || wrong != "abcde" && ended > w.at.Milliseconds() {
				t.Errorf("clocks of %q are wrong: %s has ended watermarks until %d ms after %v", wrong, r.cfg.Name, ended, w.at)
			}
		}
		w.ahead = nil
		w.run(20)
		l := w.all[0].Layout()
		l.Pins = []route.Pin{{Rule: 7, Region: "s"}}
		if err := w.log.Announce(l, w.report); err != nil {
			t.Fatal(err)
		}
		w.run(50)
		if got := w.accepts(); got != "abcxyz" {
			t.Errorf("clocks of %q were wrong: %q of the voters accept", wrong, got)
		}
	}
}

// TestEndedAheadIsCorrected restarts voters of which one, or each, has stored
// that watermarks ended in a day. It is corrected and reported as soon as the
// clocks are known.
func TestEndedAheadIsCorrected(t *testing.T) {
	for _, poisoned := range []string{"c", "abcxyz"} {
		w := newTown(t)
		w.run(5)
		day := testNow + 24*time.Hour.Milliseconds()
		for i, r := range w.all {
			var s Stored
			if strings.Contains(poisoned, r.cfg.Name) {
				r.meta.Ended = day
			}
			r.Snapshot(func(e Entry) {
				if err := s.Apply(e); err != nil {
					t.Fatal(err)
				}
			})
			again, err := NewAcceptor(r.cfg, Start{Stored: &s})
			if err != nil {
				t.Fatal(err)
			}
			w.all[i] = again
		}
		w.meet()
		for _, r := range w.all {
			reported := slices.ContainsFunc(r.events.Take(), func(e Event) bool { return e.Kind == EndedAhead })
			if reported != strings.Contains(poisoned, r.cfg.Name) || r.meta.Ended > testNow+w.at.Milliseconds()+1_000 {
				t.Errorf("%s: corrected %v, watermarks ended until %d, want %d at most", r.cfg.Name, reported, r.meta.Ended, testNow)
			}
		}
		w.run(20)
		if got := w.accepts(); got != "abcxyz" {
			t.Errorf("%q had stored it: %q of the voters accept", poisoned, got)
		}
		for _, r := range w.all {
			if r.failed != nil || r.meta.Ended > testNow+w.at.Milliseconds()+1_000 {
				t.Errorf("%s: watermarks ended until %d", r.cfg.Name, r.meta.Ended)
			}
		}
	}
}

// TestOutlierOwnsNothing lets clocks be wrong. A daemon that most others
// contradict owns no keys in the routing of all, itself included, while the
// clocks of too few or of half of all contradict nobody. A single measurement
// changes nothing: a message may have waited somewhere.
func TestOutlierOwnsNothing(t *testing.T) {
	owners := func(w *town) []string {
		var all []string
		for _, r := range w.all {
			names := map[string]bool{}
			for key := range uint64(300) {
				if o := r.Routing().Owner(crdt.Key(key*0x9e3779b97f4a7c15), 1, false, 0); o.Incarnation != 0 {
					names[o.Name] = true
				}
			}
			out := ""
			for _, name := range []string{"a", "b", "c", "x", "y", "z"} {
				if names[name] {
					out += name
				}
			}
			all = append(all, out)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	for _, x := range []struct{ wrong, owners string }{{"c", "abxyz"}, {"cx", "abyz"}, {"abc", "xyz"}, {"abcd", "abcxyz"}, {"", "abcxyz"}} {
		for _, off := range []time.Duration{-time.Hour, 600 * time.Millisecond, 24 * time.Hour} {
			w := newTown(t)
			w.run(5)
			w.ahead = map[string]time.Duration{}
			for _, name := range strings.Split(x.wrong, "") {
				w.ahead[name] = off
			}
			w.run(1)
			if got := owners(w); !slices.Equal(got, []string{"abcxyz"}) {
				t.Errorf("%q is off by %v for a moment: %q own keys", x.wrong, off, got)
			}
			w.run(1)
			if got := owners(w); !slices.Equal(got, []string{x.owners}) {
				t.Errorf("%q is off by %v: %q own keys, want %q", x.wrong, off, got, x.owners)
			}
			w.ahead = nil
			w.run(2)
			if got := owners(w); !slices.Equal(got, []string{"abcxyz"}) {
				t.Errorf("%q agrees again: %q own keys", x.wrong, got)
			}
		}
	}
}

// TestAcceptorManyWatermarks checks that watermarks which are over make room
// for new ones, and others do not.
func TestAcceptorManyWatermarks(t *testing.T) {
	g := newRig(t, Start{})
	var m sticky.Watermarks
	for i := range int64(sticky.MaxWatermarks) {
		m = append(m, g.watermark(100+i, 1)...)
	}
	g.expect("all there is room for", g.accept(2, 1, 1, nil, m).OK, true)
	g.expect("one more", g.accept(2, 1, 1, nil, g.watermark(400, 1)).Reason, sticky.Full)
	g.pass(103 * time.Second)
	g.expect("when some are over", g.accept(2, 1, 1, nil, g.watermark(400, 1)).OK, true)
	g.expect("those do not come back", g.accept(2, 1, 1, nil, g.watermark(100, 1)).Reason, sticky.Ended)
	rec, _ := g.r.Record(rigKey(1))
	g.expect("marks", len(rec.Watermarks), sticky.MaxWatermarks)
}

// TestClockLaws draws clocks of the daemons of two regions. While most of those
// of the region are right, no instant counts as passed that has not passed by a
// clock that is right, and none that has counts as impossible. Too few known
// clocks end nothing.
func TestClockLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, err := NewAcceptor(rigConfig(), Start{})
		if err != nil {
			t.Fatal(err)
		}
		r.Peers(0, 1, rigPeers())
		// True time is testNow. Clocks that are right are within 100 ms of it.
		clock := func(of string, wrong bool) time.Duration {
			if wrong {
				return time.Duration(rapid.Int64Range(-int64(48*time.Hour), int64(48*time.Hour)).Draw(t, of))
			}
			return time.Duration(rapid.Int64Range(-100, 100).Draw(t, of)) * time.Millisecond
		}
		wrong := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 4), 0, 1, rapid.ID).Draw(t, "wrong") // of r: 1 to 4
		own := clock("own", slices.Contains(wrong, 1))
		missing := rapid.IntRange(0, 3).Draw(t, "missing")
		var leads []Lead
		for _, p := range rigPeers()[1:] {
			by := clock(p.Name, slices.Contains(wrong, uint64(p.ID)) || p.Region == "s" && rapid.Bool().Draw(t, "abroad")) - own
			if p.Region == "s" || len(leads) < 3-missing {
				leads = append(leads, Lead{Peer: p.ID, By: by})
			}
		}
		now := testNow + own.Milliseconds()
		r.Clocks(time.Second, now, leads)
		passed, latest := r.clocks.passed(r.at, r.now), r.clocks.latest(r.at, r.now)
		if missing >= 2 {
			if passed != 0 || latest < testNow+time.Hour.Milliseconds() {
				t.Fatalf("%d of 4 clocks are known: passed %d, latest %d", 4-missing, passed, latest)
			}
			return
		}
		if passed > testNow+101 {
			t.Fatalf("%d ms have not passed by the clocks that are right", passed-testNow)
		}
		if latest < testNow-101+500 {
			t.Fatalf("%d ms may have passed", latest-testNow)
		}
		if len(wrong) == 0 && (passed < testNow-101 || latest > testNow+101+500) {
			t.Fatalf("all clocks of the region are right: passed %d ms, latest %d ms", passed-testNow, latest-testNow)
		}
	})
}
