package telemetry

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// TestControlMetrics exports each field of the control log.
func TestControlMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	s := ControlStats{
		Begun: true, Index: 7, Recovery: 2, Format: 3, LeaderKnown: true, Votes: true, Open: true,
		Events: map[string]uint64{"begun": 1, "split": 3},
		Limits: LimitsStats{Version: 5, InUse: 6, Pending: true, Diverged: 2, Overrides: 4},
	}
	if err := reg.Register(newControlCollector(func() ControlStats { return s })); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(scrape(t, reg)) {
		if strings.HasPrefix(line, "rld_") {
			out.WriteString(line)
		}
	}
	const want = `rld_control_begun 1
rld_control_events_total{kind="begun"} 1
rld_control_events_total{kind="split"} 3
rld_control_format 3
rld_control_leader_known 1
rld_control_leads 0
rld_control_open 1
rld_control_recovery 2
rld_control_version 7
rld_control_voter 1
rld_limits_diverged 2
rld_limits_in_use_version 6
rld_limits_overrides 4
rld_limits_pending 1
rld_limits_unusable 0
rld_limits_version 5
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("a scrape (-want +got):\n%s", diff)
	}
	problems, err := promlint.New(strings.NewReader(scrape(t, reg))).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
}
