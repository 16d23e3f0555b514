// Command scale prints what replication costs as regions grow: bytes and frames
// a decision, and how exact limits are, for several numbers of daemons of a
// region. It plays the simulator, with 100 calls a second at each daemon.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
	"github.com/georld/rld/sim/scenario"
)

func main() {
	sizes, limits := numbers{1, 3, 10, 30}, numbers{60, 1_000}
	regions := flag.Int("regions", 3, "`number` of regions")
	flag.Var(&sizes, "daemons", "`numbers` of daemons a region")
	flag.Var(&limits, "limits", "`limits` of a key a minute")
	counted := flag.Duration("bytes", 30*time.Second, "virtual `time` in which bytes and frames are counted")
	judged := flag.Duration("overage", 130*time.Second, "virtual `time` in which windows are judged")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "scale: unknown argument %q, want flags alone (-h lists them)\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := table(os.Stdout, *regions, sizes, limits, *counted, *judged); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// numbers is a flag with whole numbers above 0, separated by commas.
type numbers []int

// String returns the flag as text.
func (n *numbers) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(*n)), " ", ","), "[]")
}

// Set reads the flag.
func (n *numbers) Set(text string) error {
	*n = nil
	for part := range strings.SplitSeq(text, ",") {
		v, err := strconv.Atoi(part)
		if err != nil || v < 1 {
			return fmt.Errorf("%q is no whole number above 0", part)
		}
		*n = append(*n, v)
	}
	return nil
}

// table prints a row for each limit and number of daemons.
func table(out io.Writer, regions int, sizes, limits []int, counted, judged time.Duration) error {
	fmt.Fprintf(out, "%d regions of N daemons, 100 calls/s a daemon, Zipf 1 over 3,000 N keys; frames before TLS\n", regions)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "limit/min\tN\tbytes/decision\tframes/decision\tin region p99\tacross p99\toverage mean\tworst\tfalse denials\t")
	for _, limit := range limits {
		for _, n := range sizes {
			cost, err := play(regions, n, limit, counted)
			if err != nil {
				return err
			}
			exact, err := play(regions, n, limit, judged, "overage", "denials")
			if err != nil {
				return err
			}
			r := exact.Rules[0]
			fmt.Fprintf(w, "%d\t%d\t%.1f\t%.2f\t%.0f ms\t%.0f ms\t%.2f %%\t%.1f %%\t%.2f %%\t\n", limit, n,
				cost.BytesPerDecision, float64(cost.Traffic.Frames)/float64(max(1, cost.Decisions)),
				cost.Staleness.RegionP99Ms, cost.Staleness.AcrossP99Ms,
				100*r.OverageRatioMean, 100*r.OverageRatioMax, 100*r.FalseDenialRatio)
		}
	}
	return w.Flush()
}

// play runs one cluster for a time, with some auditors.
func play(regions, daemons, limit int, length time.Duration, auditors ...string) (*sim.Result, error) {
	cfg, err := scenario.Parse("scale.yaml", []byte(source(regions, daemons, limit, length)))
	if err != nil {
		return nil, err
	}
	return sim.Run(cfg, sim.Options{Auditors: audit.Only(auditors...)})
}

// source returns the scenario.
func source(regions, daemons, limit int, length time.Duration) string {
	var places []string
	for i := range regions {
		places = append(places, fmt.Sprintf("r%d: %d", i, daemons))
	}
	all := regions * daemons
	return fmt.Sprintf(`name: scale
duration: %v
settle: 0s
regions: {%s}
control: {}
limits:
  domain: scale
  descriptors:
    - {key: user, rate_limit: {unit: minute, requests_per_unit: %d}}
workloads:
  - {name: all, descriptor: {user: "*"}, keys: %d, zipf: 1, rate: %d/s}
`, length, strings.Join(places, ", "), limit, 3_000*daemons, 100*all)
}
