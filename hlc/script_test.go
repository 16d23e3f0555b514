package hlc

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs the arguments in testdata/scripts. -rewrite brings their
// outputs up to date.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		r := &rig{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "start":
				return r.start(t, d)
			case "run":
				return r.run(t, d)
			case "step":
				return r.step(t, d)
			case "now":
				return r.now(t, d)
			case "observe":
				return r.observe(t, d)
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

// rig is one clock on one machine, for scripts.
type rig struct {
	clock   *Clock
	machine bent
}

// start [max-offset=DURATION] [slew=N]: a new clock at 12:00:00.
func (r *rig) start(t *testing.T, d *datadriven.TestData) string {
	var cfg Config
	if d.HasArg("max-offset") {
		cfg.MaxOffset = duration(t, d, "max-offset")
	}
	d.MaybeScanArgs(t, "slew", &cfg.SlewDivisor)
	if err := cfg.Validate(); err != nil {
		return err.Error() + "\n"
	}
	r.clock, r.machine = NewClock(cfg), bent{wall: noon}
	return r.rows([]string{r.row()})
}

// run for=DURATION every=DURATION: both clocks run on; one row each time.
func (r *rig) run(t *testing.T, d *datadriven.TestData) string {
	total, every := duration(t, d, "for"), duration(t, d, "every")
	if every <= 0 || total/every > 100 {
		d.Fatalf(t, "every=%v of for=%v: want 1 to 100 rows", every, total)
	}
	var rows []string
	for range total / every {
		r.machine.pass(every)
		rows = append(rows, r.row())
	}
	return r.rows(rows)
}

// step by=DURATION: the wall clock is set, no time passes.
func (r *rig) step(t *testing.T, d *datadriven.TestData) string {
	r.machine.wall += int64(duration(t, d, "by"))
	return r.rows([]string{r.row()}) + fmt.Sprintf("steps %+v\n", r.clock.Steps())
}

// now n=N: stamps, as milliseconds after 12:00:00 and counter.
func (r *rig) now(t *testing.T, d *datadriven.TestData) string {
	n := 1
	d.MaybeScanArgs(t, "n", &n)
	var out strings.Builder
	for range n {
		s := r.clock.Now(r.machine.at())
		fmt.Fprintf(&out, "%v counter %d\n", clockTime(s.Millis()), s.Counter())
	}
	return out.String()
}

// observe ahead=DURATION: a peer's stamp so far ahead of our physical reading.
func (r *rig) observe(t *testing.T, d *datadriven.TestData) string {
	at := r.machine.at()
	r.clock.Millis(at)
	reading := (at.Wall + int64(r.clock.Offset())) / int64(time.Millisecond)
	err := r.clock.Observe(at, New(reading+duration(t, d, "ahead").Milliseconds(), 0))
	out := r.rows([]string{r.row()})
	if err != nil {
		return err.Error() + "\n" + out
	}
	return "accepted\n" + out
}

func (r *rig) row() string {
	ms := r.clock.Millis(r.machine.at())
	wall := clockTime(r.machine.wall / int64(time.Millisecond))
	minute := ms/60_000 - noon/int64(time.Minute)
	return fmt.Sprintf("%-12s  %-12s  %6d  %s", wall, clockTime(ms), minute, r.clock.Offset())
}

func (r *rig) rows(rows []string) string {
	return "wall          labels from   minute  offset\n" + strings.Join(rows, "\n") + "\n"
}

func clockTime(millis int64) string { return time.UnixMilli(millis).UTC().Format("15:04:05.000") }

func duration(t *testing.T, d *datadriven.TestData, key string) time.Duration {
	var text string
	d.ScanArgs(t, key, &text)
	v, err := time.ParseDuration(text)
	if err != nil {
		d.Fatalf(t, "%s: %v", key, err)
	}
	return v
}
