// Command scale prints the cost of replication as regions grow: bytes and
// frames a decision, and how exact limits are, for several numbers of daemons
// of a region; the traffic of daemons without calls; and the former figures, a
// step a line. It plays the simulator, with 100 calls a second at each daemon.
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
	sizes, limits := numbers{1, 3, 10, 30, 100}, numbers{60, 1_000}
	regions := flag.Int("regions", 0, "`number` of regions (default 3, and a row of 10 regions of 3)")
	flag.Var(&sizes, "daemons", "`numbers` of daemons a region")
	flag.Var(&limits, "limits", "`limits` of a key a minute")
	counted := flag.Duration("bytes", 30*time.Second, "virtual `time` in which bytes and frames are counted")
	judged := flag.Duration("overage", 130*time.Second, "virtual `time` in which windows are judged, 0 for none")
	most := flag.Int("judged", 30, "greatest `number` of daemons a region whose windows are judged")
	seed := flag.Uint64("seed", 1, "`number` that draws the calls and the network")
	idle := flag.Bool("idle", false, "print what daemons without calls send, and nothing else")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "scale: unknown argument %q, want flags alone (-h lists them)\n", flag.Arg(0))
		os.Exit(2)
	}
	clusters := clustersOf(*regions, sizes)
	run := func() error { return table(os.Stdout, clusters, limits, *seed, *counted, *judged, *most) }
	if *idle {
		run = func() error { return idleTable(os.Stdout, clusters) }
	}
	if !*idle && *regions == 0 {
		fmt.Print(steps)
	}
	if err := run(); err != nil {
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

// table prints a row for each limit and cluster. Windows are judged up to most
// daemons a region.
func table(out io.Writer, clusters []cluster, limits []int, seed uint64, counted, judged time.Duration, most int) error {
	fmt.Fprintln(out, "R regions of N daemons, 100 calls/s a daemon, Zipf 1 over 3,000 N keys; frames before TLS")
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "limit/min\tR\tN\tbytes/decision\tframes/decision\tkB/s a daemon\tin region p99\tacross p99\tnear limits: in region\tacross\toverage mean\tworst\tlater mean\tworst\tfalse denials\t")
	for _, limit := range limits {
		for _, c := range clusters {
			cost, err := play(c, limit, seed, counted)
			if err != nil {
				return err
			}
			exact := strings.Repeat("-\t", 6) + "-"
			if judged > 0 && c.daemons <= most {
				x, err := play(c, limit, seed, judged, "overage", "denials")
				if err != nil {
					return err
				}
				r := x.Rules[0]
				exact = fmt.Sprintf("%.0f ms\t%.0f ms\t%.2f %%\t%.1f %%\t%.2f %%\t%.1f %%\t%.2f %%",
					x.Staleness.NearRegionP99Ms, x.Staleness.NearAcrossP99Ms, 100*r.OverageRatioMean, 100*r.OverageRatioMax,
					100*r.OverageLaterMean, 100*r.OverageLaterMax, 100*r.FalseDenialRatio)
			}
			fmt.Fprintf(w, "%d\t%d\t%d\t%.1f\t%.2f\t%.2f\t%.0f ms\t%.0f ms\t%s\t\n", limit, c.regions, c.daemons,
				cost.BytesPerDecision, float64(cost.Traffic.Frames)/float64(max(1, cost.Decisions)),
				float64(cost.Traffic.Bytes)/1000/counted.Seconds()/float64(c.all()),
				cost.Staleness.RegionP99Ms, cost.Staleness.AcrossP99Ms, exact)
		}
	}
	return w.Flush()
}

// play runs one cluster for a time, with some auditors.
func play(c cluster, limit int, seed uint64, length time.Duration, auditors ...string) (*sim.Result, error) {
	cfg, err := scenario.Parse("scale.yaml", []byte(source(c, limit, length)))
	if err != nil {
		return nil, err
	}
	cfg.Seed = seed
	options := sim.Options{}
	if len(auditors) > 0 {
		options.Auditors = audit.Only(auditors...)
	}
	return sim.Run(cfg, options)
}

// source returns the scenario.
func source(c cluster, limit int, length time.Duration) string {
	var places []string
	for i := range c.regions {
		places = append(places, fmt.Sprintf("r%d: %d", i, c.daemons))
	}
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
`, length, strings.Join(places, ", "), limit, 3_000*c.daemons, 100*c.all())
}
