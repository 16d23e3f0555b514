package grid

import (
	_ "embed" // For the figures of the design.
	"encoding/json"
	"fmt"
	"sync"

	"github.com/georld/rld/sim"
)

// designFile holds the figures of the simulation of the design, in percent:
// mean and worst overage, and false denials, by pattern. Three regions of one
// daemon, a budget of 10 %, 1 % of the messages lost. False denials of bursts
// under budgeted and partition are those of its later transfer policy, which is
// the one in use.
//
//go:embed design.json
var designFile []byte

// policyDesign is the figures of one policy at one size.
type policyDesign struct {
	WindowSeconds float64               `json:"window_seconds"`
	LagSeconds    float64               `json:"lag_seconds"`
	Policy        string                `json:"policy"`
	Percent       map[string][3]float64 `json:"percent"` // by pattern
}

// policyDesigns returns the parsed designFile.
var policyDesigns = sync.OnceValue(func() (all []policyDesign) {
	if err := json.Unmarshal(designFile, &all); err != nil {
		panic(fmt.Sprintf("sim: figures of the design: %v", err)) // of our own making
	}
	return all
})

// designFor returns the figures of the design for a cell, nil for none.
func designFor(size Size, pattern Pattern, p sim.Policy) *sim.GridDesign {
	for _, d := range policyDesigns() {
		if d.WindowSeconds == size.Window.Seconds() && d.LagSeconds == size.Lag.Seconds() && d.Policy == p.String() {
			c := d.Percent[pattern.String()]
			return &sim.GridDesign{OverageMean: c[0] / 100, OverageWorst: c[1] / 100, FalseDenial: c[2] / 100}
		}
	}
	return nil
}
