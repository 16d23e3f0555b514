package agent

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/quota/epoch"
)

func TestGenesis(t *testing.T) {
	r := newRig(t, 1, 3, 2, 1)
	r.boot()
	r.until(time.Second, "all held after the first start", r.whole)
	r.run(30 * time.Second)
	r.safe()
	if !r.whole() {
		t.Errorf("%d of %d after a while", r.held(0), r.asked[0].total)
	}
	for _, p := range r.daemons {
		if s := p.Status(); !p.ready || len(s.Regions) != 1 || len(s.Daemons) != 1 {
			t.Errorf("%s: ready %v, epochs %v, %v", p.name, p.ready, s.Regions, s.Daemons)
		}
	}
}

func TestDeadDaemon(t *testing.T) {
	r := newRig(t, 1, 3, 1, 1)
	r.boot()
	r.run(10 * time.Second)
	dead := r.find("a2")
	r.crash(dead)
	took := r.until(32*time.Second, "share of the dead", r.whole)
	if took < 29*time.Second {
		t.Errorf("back after %v: the dead may hold 30 s", took)
	}
	r.safe()
	r.restart(dead, false)
	r.until(10*time.Second, "returned", func() bool { return r.base(dead, 0) > 1000 && r.whole() })
	r.safe()
}

func TestJoiner(t *testing.T) {
	r := newRig(t, 1, 1, 1, 1)
	r.boot()
	r.run(5 * time.Second)
	p := r.join("a")
	r.until(10*time.Second, "joined", func() bool { return r.base(p, 0) > 1000 && r.whole() })
	r.safe()
	q := r.join("a")
	r.until(10*time.Second, "joined", func() bool { return r.base(q, 0) > 1000 && r.whole() })
	r.safe()
}

func TestForgetful(t *testing.T) {
	r := newRig(t, 1, 2, 1, 1)
	r.boot()
	r.run(5 * time.Second)
	p := r.find("a1")
	r.crash(p)
	r.run(time.Second)
	r.restart(p, true)
	r.run(3 * step)
	if _, why := p.Allotment(11, 100, r.now(p), 0, false); why == epoch.ReasonEpoch {
		t.Error("holds something right after it lost its memory")
	}
	r.until(15*time.Second, "rejoined", func() bool { return r.base(p, 0) > 1000 && r.whole() })
	r.safe()
}

func TestRebalance(t *testing.T) {
	r := newRig(t, 1, 2, 2, 1)
	r.demand = func(p *proc, rule uint64) uint64 {
		if p.region == "a" {
			return 500
		}
		return 50
	}
	r.boot()
	r.run(130 * time.Second)
	r.safe()
	if got := r.base(r.find("a1"), 0); got < 3500 {
		r.dump()
		t.Errorf("a1 holds %d of %d with nine tenths of the demand", got, r.asked[0].total)
	}
	if !r.whole() {
		t.Errorf("%d of %d", r.held(0), r.asked[0].total)
	}
	was := r.find("a1").Status().Regions[0].ID
	r.run(100 * time.Second)
	if is := r.find("a1").Status().Regions[0].ID; was != is {
		t.Errorf("epoch %s became %s though the demand is steady", was, is)
	}
}

func TestRetireRegion(t *testing.T) {
	r := newRig(t, 1, 2, 2, 2)
	r.boot()
	r.run(10 * time.Second)
	r.crash(r.find("c1"))
	r.crash(r.find("c2"))
	r.run(3 * time.Second)
	if err := r.find("a2").RetireRegion("c"); err != nil {
		t.Fatal(err)
	}
	r.until(15*time.Second, "retired", r.whole)
	r.safe()
	if err := r.find("b1").RetireRegion("c"); err == nil {
		t.Error("retired twice")
	}
	r.restart(r.find("c1"), false)
	r.restart(r.find("c2"), false)
	r.run(3 * time.Second)
	if got := r.held(0); r.base(r.find("c1"), 0) != 0 {
		t.Errorf("c1 holds something of %d though it is retired", got)
	}
	if err := r.find("b1").ReturnRegion("c"); err != nil {
		t.Fatal(err)
	}
	r.until(5*time.Second, "returned", func() bool { return r.base(r.find("c1"), 0) > 1000 && r.whole() })
	r.safe()
}

// TestScaledPartsSumToTheTotal: whatever the amounts, none but the first gets
// more than its proportion, and together they get the total.
func TestScaledPartsSumToTheTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amounts := rapid.SliceOfN(rapid.Uint32Range(0, 5), 1, 8).Draw(t, "amounts")
		total := rapid.Uint64Range(0, epoch.Whole).Draw(t, "total")
		sum, left := uint64(0), total
		for _, a := range amounts {
			sum += uint64(a)
		}
		for i, part := range scaled(amounts, total) {
			if uint64(part) > left {
				t.Fatalf("part %d of %d is %d, and %d are left", i, total, part, left)
			}
			if left -= uint64(part); i > 0 && sum > 0 && uint64(part) > total*uint64(amounts[i])/sum {
				t.Fatalf("part %d of %d is %d, for %d of %d", i, total, part, amounts[i], sum)
			}
		}
		if left != 0 {
			t.Fatalf("%d of %d are left", left, total)
		}
	})
}

func TestRetireDaemon(t *testing.T) {
	r := newRig(t, 1, 2, 1, 1)
	r.boot()
	r.run(10 * time.Second)
	r.crash(r.find("a2"))
	r.run(10 * time.Second)
	if err := r.find("a1").RetireDaemon("a2"); err != nil {
		t.Fatal(err)
	}
	r.until(12*time.Second, "retired", r.whole)
	r.safe()
}
