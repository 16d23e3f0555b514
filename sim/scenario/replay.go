package scenario

import (
	"fmt"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/load"
)

// Replay returns a run that plays recorded traffic against limits. Of the
// regions of the trace those named run, each with some daemons; calls from the
// others are spread over them. Without names one region gets everything.
func Replay(t *load.Trace, set *rules.Set, regions []string, daemons int) (*sim.Config, error) {
	cfg := sim.Default()
	cfg.Name, cfg.Settle = "replay", 0
	cfg.Node.MaxKeys = node.Default().MaxKeys
	cfg.Trace, cfg.Rules, cfg.Regions = t, set, nil
	if len(regions) == 0 {
		regions = []string{"all"}
	}
	for _, name := range regions {
		cfg.Regions = append(cfg.Regions, sim.Region{Name: name, Daemons: max(1, daemons)})
	}
	if n := len(t.Entries); n > 0 {
		cfg.Duration = max(time.Second, t.Entries[n-1].At+1)
	}
	cfg.Epoch = t.Start // so that windows are as recorded
	for _, k := range t.Keys {
		if n := len(set.Domains()); k.Domain == "" && n != 1 {
			return nil, fmt.Errorf("sim: the limits have %d domains, so the trace needs a column domain", n)
		}
	}
	return &cfg, nil
}
