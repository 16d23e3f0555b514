package wire

import (
	"fmt"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/quota/epoch"
)

// rightsWorld is one rights agent in each of three regions, with their messages
// as frames, 80 ms between them.
type rightsWorld struct {
	t      testing.TB
	at     time.Duration
	agents []*agent.Agent
	cfg    agent.Config
	rules  []agent.Rule
	hits   []uint64
	flight []rightsParcel
	bytes  map[[2]int]int // by pair of regions, in either direction
	spent  time.Duration
}

type rightsParcel struct {
	at    time.Duration
	to    int
	frame []byte
}

func newRegions(t testing.TB, rules int, period time.Duration) *rightsWorld {
	r := &rightsWorld{t: t, bytes: map[[2]int]int{}, at: time.Second}
	var peers []gossip.Peer
	cfg := agent.Config{Period: period}
	for i := range 3 {
		name := string(rune('a' + i))
		cfg.Genesis = append(cfg.Genesis, agent.Region{Name: name, ID: uint64(i + 1)})
		peers = append(peers, gossip.Peer{ID: crdt.Incarnation(i + 1), Name: name + "1", Region: name})
	}
	r.cfg = cfg
	for i := range rules {
		r.rules = append(r.rules, agent.Rule{ID: uint64(i+1) * 0x9e3779b97f4a7c15})
	}
	r.hits = make([]uint64, rules)
	for i, p := range peers {
		cfg.Region, cfg.Name, cfg.Generation = p.Region, p.Name, uint64(i+1)
		cfg.Self, cfg.Founders = uint64(i+11), []uint64{uint64(i + 11)}
		o, err := agent.New(cfg, agent.Start{Found: true})
		if err != nil {
			t.Fatal(err)
		}
		o.Confirm()
		o.Rules(r.rules)
		o.Peers(r.at, crdt.Incarnation(i+1), peers)
		r.agents = append(r.agents, o)
	}
	return r
}

// run lets time pass; load is the calls of a region in 100 ms by rule.
func (r *rightsWorld) run(d time.Duration, load func(at time.Duration, region, rule int) uint64) {
	totals := make([][]uint64, 3)
	for i := range totals {
		totals[i] = make([]uint64, len(r.rules))
	}
	for end := r.at + d; r.at < end; {
		r.at += 20 * time.Millisecond
		now := 1_767_225_600_000 + r.at.Milliseconds()
		began := time.Now()
		kept := r.flight[:0]
		for _, p := range r.flight {
			if p.at > r.at {
				kept = append(kept, p)
				continue
			}
			m, err := DecodeRights(p.frame)
			if err == nil {
				err = r.agents[p.to].Receive(r.at, now, m)
			}
			if err != nil {
				r.t.Fatal(err)
			}
		}
		r.flight = kept
		for i, o := range r.agents {
			if load != nil && r.at%(100*time.Millisecond) == 0 {
				for j, rule := range r.rules {
					r.hits[j] += load(r.at, i, j)
					totals[i][j] += load(r.at, i, j)
					o.Demand(rule.ID, totals[i][j])
				}
			}
			o.Tick(r.at, hlc.New(now, uint16(i)), false)
			r.ready(i, o)
		}
		r.spent += time.Since(began)
	}
}

func (r *rightsWorld) ready(i int, o *agent.Agent) {
	for {
		out := o.Ready(r.at)
		if out.Proposal != nil {
			o.Regions(r.cfg.Genesis, []epoch.Epoch{*out.Proposal})
		}
		for j := range out.Messages {
			m := &out.Messages[j]
			frame, err := EncodeRights(nil, m)
			if err != nil {
				r.t.Fatal(err)
			}
			to := int(m.To) - 1
			r.bytes[[2]int{min(i, to), max(i, to)}] += len(frame)
			r.flight = append(r.flight, rightsParcel{r.at + 80*time.Millisecond, to, frame})
		}
		if out.Store == nil {
			return
		}
		_ = EncodeStored(1, "x", out.Store)
		o.Stored()
	}
}

// worst returns the bytes a second of the pair of regions that has most.
func (r *rightsWorld) worst(d time.Duration) int {
	most := 0
	for _, b := range r.bytes {
		most = max(most, b)
	}
	return most * int(time.Second) / int(d)
}

// moving is demand of which each rule has most in one region, and moves on
// every minute.
func moving(at time.Duration, region, rule int) uint64 {
	if int(at/time.Minute+time.Duration(rule))%3 == region {
		return 80
	}
	return 10
}

// TestRightsSize bounds the bytes that the epochs of 1,000 rules need between a
// pair of regions.
func TestRightsSize(t *testing.T) {
	if testing.Short() {
		t.Skip("minutes of virtual time")
	}
	for _, tt := range []struct {
		name string
		load func(at time.Duration, region, rule int) uint64
		most int // bytes a second
	}{
		{"idle", nil, 700},
		{"moving", moving, 2_048},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRegions(t, 1_000, 30*time.Second)
			const d = 4 * time.Minute
			r.run(d, tt.load)
			if got := r.worst(d); got > tt.most {
				t.Errorf("%d bytes a second for the worst pair, want at most %d", got, tt.most)
			}
			if tt.load == nil {
				return
			}
			if s := r.agents[0].Status(); len(s.Regions) == 0 || s.Regions[0].Rules == 0 {
				t.Errorf("nothing was rebalanced: %+v", s.Regions)
			}
		})
	}
}

func BenchmarkRights(b *testing.B) {
	for _, load := range []struct {
		name string
		f    func(at time.Duration, region, rule int) uint64
	}{{"idle", nil}, {"moving", moving}} {
		b.Run(fmt.Sprintf("rules=1000/%s", load.name), func(b *testing.B) {
			r := newRegions(b, 1_000, 30*time.Second)
			b.ResetTimer()
			for range b.N {
				r.run(time.Second, load.f)
			}
			b.ReportMetric(float64(r.worst(time.Duration(b.N)*time.Second)), "B/s/pair")
			b.ReportMetric(float64(r.spent)/float64(b.N)/3/1e7, "%core/daemon")
		})
	}
}
