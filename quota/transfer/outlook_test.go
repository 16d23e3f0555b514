package transfer

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// fixedView is a view with other regions and no regional peers.
type fixedView struct {
	peers     []Peer
	regions   []gossip.RemoteRegion
	allotment uint64
}

func (v *fixedView) Peers() []Peer                  { return v.peers }
func (v *fixedView) Regions() []gossip.RemoteRegion { return v.regions }
func (v *fixedView) Allotment(string) uint64        { return v.allotment }

// lateInput is the input of an aggregator in windows of a second with views
// that are half a second old.
func lateInput(now int64, rights uint64) *Input {
	const rtt = 900 * time.Millisecond
	return &Input{
		Now: now, Window: now - now%1000 + 1_000_000, ElapsedMS: now % 1000, Policy: Policy{WindowMS: 1000},
		Limit: 1000, Rights: rights, Self: 1, Aggregator: 1, Region: "a",
		View: &fixedView{allotment: 366, regions: []gossip.RemoteRegion{
			{Region: "b", Aggregator: 2, RTT: rtt}, {Region: "c", Aggregator: 3, RTT: rtt},
		}},
	}
}

// offerWindow offers hits evenly over a window, and returns the notices and
// when they were sent.
func offerWindow(k *Key, start int64, hits int) (needs []uint64, at int64) {
	for i := range hits {
		now := start + int64(i)*1000/int64(hits)
		k.Offer(now, 1)
		for _, m := range k.Check(lateInput(now, 0)).Messages {
			if m.Kind == gossip.ShortageNotice && m.Window == lateInput(now, 0).Window+1000 {
				needs, at = append(needs, m.Need), now-start
			}
		}
	}
	return needs, at
}

// Where transfers take too long for a window, a region announces the shortage
// of the next one, to each region, in time, once forecasts proved to be
// reliable; and no more when they do not come true.
func TestShortageOfTheNextWindow(t *testing.T) {
	k := New(0, 1_000_000, 0, 0)
	for i := range int64(4) {
		if needs, _ := offerWindow(&k, 1000*i, 640); len(needs) > 0 {
			t.Errorf("window %d: announces %d before its forecasts were compared", i, needs)
		}
	}
	needs, at := offerWindow(&k, 4000, 640)
	if len(needs) != 2 || needs[0] < 640-366 || needs[0] > 640*5/4-366 || at > 1000-450 {
		t.Errorf("a steady load of 640 with an allotment of 366: announces %d after %d ms", needs, at)
	}
	announced := 0
	for i := range int64(40) { // from now on in each second window alone
		if needs, _ := offerWindow(&k, 5000+2000*i, 640); len(needs) > 0 {
			announced++
		}
		_, _ = offerWindow(&k, 6000+2000*i, 80)
	}
	if announced > 4 {
		t.Errorf("announces %d times shortages that do not come", announced)
	}
	if needs, _ := offerWindow(&k, 90_000, 366); len(needs) > 0 {
		t.Errorf("announces %d with enough rights", needs)
	}
}

// A donor transfers its rights in the next window, not before, and keeps those
// that it turns out to need itself.
func TestExpectedShortageIsMet(t *testing.T) {
	notice := &gossip.RightsMessage{Kind: gossip.ShortageNotice, Window: 1_001_000, Rights: 366, Second: 640, Need: 300}
	from := Sender{ID: 2, Remote: true, RTT: 900 * time.Millisecond}
	donor := func() *Key {
		k := New(0, 1_000_000, 0, 0)
		out := k.Step(lateInput(800, 366), from, notice)
		if len(out.Transfers)+len(out.Messages) > 0 || out.Wake != 1000 {
			t.Fatalf("on a notice: %+v, want only to be called at 1000", out)
		}
		if out := k.Step(lateInput(810, 366), from, notice); out.Wake != 0 {
			t.Fatalf("on a second notice: %+v, want no further call", out)
		}
		return &k
	}

	idle := donor()
	out := idle.Review(lateInput(1000, 366))
	if len(out.Transfers) > 0 || out.Wake <= 1000 || out.Wake > 1200 {
		t.Fatalf("at the start: %+v, want to be called soon", out)
	}
	out = idle.Review(lateInput(out.Wake, 366))
	if len(out.Transfers) != 1 || out.Transfers[0].To != 2 || out.Transfers[0].Hits != 150 {
		t.Errorf("of a shortage of 300, two donors: %+v, want 150", out.Transfers)
	}
	if out = idle.Review(lateInput(1500, 216)); len(out.Transfers) > 0 {
		t.Errorf("transfers %+v once more", out.Transfers)
	}

	busy := donor()
	for now := int64(1000); now < 1064; now++ {
		busy.Offer(now, 1)
		if out := busy.Check(lateInput(now, 366)); len(out.Transfers) > 0 {
			t.Fatalf("%d ms after the start: transfers %+v", now-1000, out.Transfers)
		}
	}
	if out := busy.Review(lateInput(1070, 302)); len(out.Transfers) > 0 {
		t.Errorf("with a load of 1000 a second: transfers %+v", out.Transfers)
	}

	if out := donor().Review(lateInput(2100, 366)); len(out.Transfers) > 0 {
		t.Errorf("a window later: transfers %+v", out.Transfers)
	}
}

// Whatever comes: an aggregator transfers no more than it may, keeps a bounded
// number of shortages, and asks to be called later, not at once.
func TestOutlookIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := New(instant(t, "start"), 0, amount(t, "given"), amount(t, "used"))
		now := instant(t, "now")
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			now += rapid.OneOf(rapid.Int64Range(0, 300), rapid.Int64Range(-10, 10_000)).Draw(t, "gap")
			in := lateInput(max(now, 0), amount(t, "rights"))
			in.Policy.Entity = rapid.Bool().Draw(t, "entity")
			in.Policy.WindowMS = rapid.OneOf(rapid.Just(int64(1000)), rapid.Int64Range(0, 5000), rapid.Int64()).Draw(t, "length")
			in.Limit, in.Estimate, in.Used = amount(t, "limit"), amount(t, "estimate"), amount(t, "used")
			view := in.View.(*fixedView)
			view.allotment = amount(t, "allotment")
			view.peers = []Peer{{ID: 9, Held: amount(t, "held"), Used: amount(t, "admitted"), Rate: amount(t, "rate")}}
			from := Sender{ID: crdt.Incarnation(rapid.Uint64Range(2, 200).Draw(t, "from")), Remote: true}
			from.RTT = time.Duration(rapid.OneOf(rapid.Int64Range(-1, 1e9), rapid.Int64()).Draw(t, "rtt"))
			var out Output
			switch rapid.IntRange(0, 2).Draw(t, "call") {
			case 0:
				k.Offer(in.Now, amount(t, "hits"))
				out = k.Check(in)
			case 1:
				out = k.Review(in)
			default:
				out = k.Step(in, from, &gossip.RightsMessage{
					Kind: gossip.ShortageNotice, Window: in.Window + rapid.Int64Range(0, 1).Draw(t, "ahead")*1000, Rights: amount(t, "their rights"), Second: amount(t, "second"), Need: amount(t, "need"),
				})
			}
			given, most := uint64(0), in.Rights
			for _, tr := range out.Transfers {
				if tr.Hits > most {
					t.Fatalf("a transfer of %d of %d rights", tr.Hits, most)
				}
				given += tr.Hits
			}
			if out.Wake != 0 && out.Wake <= in.Now && in.Now < math.MaxInt64 {
				t.Fatalf("asks at %d for a call at %d", in.Now, out.Wake)
			}
			if o := k.outlook; o != nil && (len(o.expected) > maxNeeds || o.met > o.seen || o.seen > 17*forecastUnit) {
				t.Fatalf("outlook with %d shortages, %d of %d forecasts", len(o.expected), o.met, o.seen)
			}
		}
	})
}
