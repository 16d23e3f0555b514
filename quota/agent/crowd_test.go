package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/georld/rld/rules"
)

// TestCrowd: all daemons of a region lead while they do not receive each
// other's messages, and propose what an operator pinned. There are more epochs
// than a daemon may acknowledge. After the heal one of them is settled.
func TestCrowd(t *testing.T) {
	for _, seed := range seeds(t, 4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newRig(t, seed, 9, 2)
			for i := range 5 {
				r.daemons = append(r.daemons, &proc{name: fmt.Sprint("a", i+10), region: "a"})
			}
			r.loss = 40
			r.boot()
			r.run(3 * time.Second)
			r.cut = func(from, to *proc) bool { return true }
			r.run(20 * time.Second)
			r.rules[0].Pins = []rules.Weight{{Region: "a", Share: 700_000}}
			for _, p := range r.daemons {
				p.Rules(r.rules)
			}
			r.run(3 * time.Second)
			r.cut = nil
			r.until(40*time.Second, "settled", func() bool {
				for _, p := range r.daemons {
					if s, _ := p.Agent.region.Settled(); len(s.Rules) == 0 {
						return false
					}
				}
				return true
			})
			r.safe()
		})
	}
}
