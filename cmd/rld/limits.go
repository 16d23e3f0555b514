package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/cmd/rld/limitstest"
	"github.com/georld/rld/config"
	"github.com/georld/rld/daemon"
	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/overage"
	"github.com/georld/rld/rules"
)

func newLimits(p process) *cobra.Command {
	cmd := group("limits", "Check files of limits, and change the limits of the cluster", newLimitsCheck(p))
	cmd.AddCommand(newLimitsTest(p), newSchema(p, "a file of limits", limits.Schema), newLimitsApply(p), newLimitsDiff(p), newLimitsHistory(p), newLimitsRollback(p), newLimitsAdopt(p),
		newLimitsSet(p), newLimitsUnset(p), newLimitsList(p))
	return cmd
}

func newLimitsCheck(p process) *cobra.Command {
	var merge bool
	var form formFlag
	var staleness time.Duration
	regions := 2
	cmd := &cobra.Command{
		Use:   "check PATH",
		Short: "Check whether a daemon accepts a file or a folder of limits",
		Long: "Read limits as a daemon does and list every fault with its place. With --staleness, warn\n" +
			"of limits whose windows are short for the age of the views of other regions, as rld status\n" +
			"shows it. The exit code is 0 when a daemon accepts them, 1 when it refuses them, 2 for\n" +
			"wrong usage.",
		Example: "  rld limits check limits/\n" +
			"  rld limits check limits.yaml -o json\n" +
			"  rld limits check limits.yaml --staleness 500ms --regions 3",
		Args: one("paths", "one file or folder of limits", "the path is empty, use a file or folder of limits"),
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case staleness < 0:
				return fmt.Errorf("--staleness %s: want an age such as 500ms", staleness)
			case regions < 1 || regions > overage.MaxRegions:
				return fmt.Errorf("--regions %d: want 1 to %d", regions, overage.MaxRegions)
			}
			c, err := limitsConfig(p.environ, args[0], merge)
			if err != nil {
				return exitWith(exitNoneOf, err)
			}
			r := newLimitsReport(c)
			r.warnShort(staleness, regions)
			return r.print(p, form)
		},
	}
	addMergeFlag(cmd, &merge)
	cmd.Flags().DurationVar(&staleness, "staleness", 0, "age of the views of other regions to judge windows by")
	cmd.Flags().IntVar(&regions, "regions", regions, "number of regions, for --staleness")
	addFormFlag(cmd.Flags(), &form, formTable, "report")
	return cmd
}

func newLimitsTest(p process) *cobra.Command {
	var merge bool
	var form formFlag
	cmd := &cobra.Command{
		Use:   "test LIMITS FILE...",
		Short: "Test limits: make the calls of files, and compare the answers with the expected ones",
		Long: "Read a file or a folder of limits as a daemon does, and play the tests of the other files\n" +
			"on a daemon alone, in simulated time: no daemon is asked. Each test begins with unused\n" +
			"limits. The exit code is 0 when all answers are the expected ones, 1 when one is not or\n" +
			"the limits are refused, 2 for wrong usage.",
		Example: "  rld limits test limits/ limits_test.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fmt.Errorf("%s: want limits and at least one file of tests, such as rld limits test limits/ limits_test.yaml", suggest.Plural(len(args), "argument"))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := limitsConfig(p.environ, args[0], merge)
			if err != nil {
				return exitWith(exitNoneOf, err)
			}
			limits := newLimitsReport(c)
			if !limits.OK {
				return limits.print(p, form)
			}
			r, err := limitstest.Run(limits.set, args[1:])
			if err != nil {
				return exitWith(exitNo, err)
			}
			var failed error
			if !r.OK {
				failed = &exitError{code: exitNo}
			}
			if form.json {
				return cmp.Or(exitWith(exitNoneOf, indented(p.out, r)), failed)
			}
			return cmp.Or(p.write(r.Text()), failed)
		},
	}
	addMergeFlag(cmd, &merge)
	addFormFlag(cmd.Flags(), &form, formTable, "report")
	return cmd
}

// limitsConfig returns the settings with which a daemon reads path. From the
// environment it takes only the merging of domains, since the command checks
// limits alone.
func limitsConfig(environ []string, path string, merge bool) (config.Limits, error) {
	s := config.Sources{Flags: map[string]string{"limits": path}}
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if name == "MERGE_DOMAIN_CONFIG" || name == "RLD_MERGE_DOMAINS" {
			s.Environ = append(s.Environ, e)
		}
	}
	if merge {
		s.Flags["merge-domains"] = "true"
	}
	loaded, err := config.Load(s)
	if err != nil {
		return config.Limits{}, err
	}
	return loaded.Config.Limits, nil
}

// limitsReport is the result of checking limits.
type limitsReport struct {
	OK    bool `json:"ok"`
	Files int  `json:"files"`
	// Domains and Rules are of limits that would be taken.
	Domains  []string             `json:"domains"`
	Rules    int                  `json:"rules"`
	Faults   []yamlpos.Diagnostic `json:"faults"`   // with that of reading the files
	Warnings []string             `json:"warnings"` // about the files, and short windows

	unread error // the files cannot be read
	found  yamlpos.Diagnostics
	set    *rules.Set // nil for limits that would be refused
}

// newLimitsReport checks limits for any daemon.
func newLimitsReport(c config.Limits) *limitsReport {
	return checkLimits(&c, limits.Options{MergeDomains: c.MergeDomains})
}

// checkLimits checks limits as a daemon with these options reads them.
func checkLimits(c *config.Limits, o limits.Options) *limitsReport {
	// Lists are there in JSON even when they are empty.
	r := &limitsReport{Domains: []string{}, Faults: []yamlpos.Diagnostic{}, Warnings: []string{}}
	read := daemon.ReadLimits(c)
	r.Files = len(read.Files)
	r.Warnings = append(r.Warnings, read.Warnings...)
	if read.Err != nil {
		r.unread = read.Err
		r.Faults = append(r.Faults, yamlpos.Diagnostic{Message: read.Err.Error()})
		return r
	}
	r.set, r.found = limits.Parse(read.Files, o)
	r.Faults = append(r.Faults, r.found...)
	if r.set != nil {
		r.OK, r.Domains, r.Rules = true, r.set.Domains(), len(r.set.Rules())
	}
	return r
}

// warnShort warns of limits without rights whose windows are short for the age
// of the views of other regions, once for each length.
func (r *limitsReport) warnShort(age time.Duration, regions int) {
	if r.set == nil {
		return
	}
	type group struct {
		lag   overage.Lag
		first *rules.Rule
		more  int
	}
	var short []group
	for _, rule := range r.set.Rules() {
		l := rule.Limit
		if l == nil || !overage.SeesLate(l) {
			continue
		}
		lag := overage.Lag{WindowMs: quota.Of(l).ReportLength(), AgeMs: age.Milliseconds(), Regions: regions}
		if i := slices.IndexFunc(short, func(g group) bool { return g.lag == lag }); i >= 0 {
			short[i].more++
		} else if lag.Short() {
			short = append(short, group{lag: lag, first: rule})
		}
	}
	for _, g := range short {
		name := ruleText(g.first.Domain, g.first.Path, g.first.Limit.Name)
		if g.more > 0 {
			name += fmt.Sprintf(" and %s", suggest.Plural(g.more, "other limit"))
		}
		r.Warnings = append(r.Warnings, fmt.Sprintf("%v: %s: %v", g.first.Pos, name, g.lag))
	}
}

// print writes the report; faults go to standard error, like those of a
// compiler.
func (r *limitsReport) print(p process, form formFlag) error {
	var refused error
	if !r.OK {
		refused = &exitError{code: exitNo}
	}
	if form.json {
		return cmp.Or(exitWith(exitNoneOf, indented(p.out, r)), refused)
	}
	out, faults := "", warningText(r.Warnings)+r.found.String()
	switch {
	case r.unread != nil:
		faults += fmt.Sprintf("rld: %v\n", r.unread)
	case !r.OK:
		faults += fmt.Sprintf("rld: a daemon would refuse these limits: %s\n", suggest.Plural(r.refusals(), "fault"))
	default:
		out = fmt.Sprintf("ok: %s\n", r.content())
	}
	return cmp.Or(p.write(out, faults), refused)
}

// content returns the size of limits that would be taken.
func (r *limitsReport) content() string {
	return fmt.Sprintf("%s in %s from %s", suggest.Plural(r.Rules, "rule"), suggest.Plural(len(r.Domains), "domain"),
		suggest.Plural(r.Files, "file"))
}

// refusals counts the faults that refuse the limits.
func (r *limitsReport) refusals() int {
	return len(r.found) - len(r.found.Warnings()) - len(r.found.Notes())
}
