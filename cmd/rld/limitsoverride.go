package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/server/admin/api"
)

// overrideFlags are those of commands that set an override.
type overrideFlags struct {
	length time.Duration
	from   string
}

func (o *overrideFlags) add(c *limitsChange, cmd *cobra.Command) {
	f := cmd.Flags()
	f.DurationVar(&o.length, "for", 0, "how long, such as 2h (required)")
	f.StringVar(&o.from, "from", "", "`time` when it begins, such as 2026-01-31T18:00:00Z (default now)")
	f.StringVar(&c.request.IfVersion, "if-version", "", "`version` of the override that this one replaces")
}

// prepare sets the times of a request.
func (o *overrideFlags) prepare(c *limitsChange) error {
	switch {
	case o.length == 0:
		return errors.New("--for is missing: want a duration such as 2h")
	case o.length < 0:
		return fmt.Errorf("--for %s: want a length of time above 0, such as 2h", o.length)
	}
	if c.request.ForSeconds = o.length.Seconds(); o.from == "" {
		return nil
	}
	at, err := time.Parse(time.RFC3339, o.from)
	if err != nil {
		return fmt.Errorf("--from %q: want a time such as 2026-01-31T18:00:00Z", o.from)
	}
	c.request.From = &at
	return nil
}

func newLimitsSet(p process) *cobra.Command {
	c := &limitsChange{name: api.SetOverride}
	var o overrideFlags
	cmd := c.command(p, &cobra.Command{
		Use:   "set RULE VALUE...",
		Short: "Override the limit of a rule for some time",
		Long: "Override values of a rule of the control log for some time: requests=N, overage_budget=P%,\n" +
			"mode=shadow or mode=enforce. RULE is its path, or the name of its limit. Overrides survive\n" +
			"rld limits apply, and end by themselves. A rule has one at a time. What raises, as mode=shadow\n" +
			"does, is in force in whole windows of the rule, so for longer than --for; what lowers acts at\n" +
			"once.",
		Example: "  rld limits set 'tier=premium > user_id' requests=500 --for 2h --reason 'a sale'\n" +
			"  rld limits set login mode=shadow --for 30m\n" +
			"  rld limits set login overage_budget=2% --for 24h",
		Args: cobra.MinimumNArgs(2),
	}, func(args []string) error {
		if err := o.prepare(c); err != nil {
			return err
		}
		c.request.Rule = args[0]
		for _, arg := range args[1:] {
			if err := readValue(&c.request, arg); err != nil {
				return err
			}
		}
		return nil
	})
	o.add(c, cmd)
	addDomainFlag(cmd, c)
	return cmd
}

func addDomainFlag(cmd *cobra.Command, c *limitsChange) {
	cmd.Flags().StringVar(&c.request.Domain, "domain", "", "domain of the rule (default the one that has it)")
}

// readValue sets a value of an override: name=value.
func readValue(q *api.LimitsRequest, arg string) error {
	name, value, _ := strings.Cut(arg, "=")
	switch name {
	case "requests":
		n, err := strconv.ParseUint(value, 10, 32)
		if err != nil {
			return fmt.Errorf("requests=%s: want a whole number from 0 to 4294967295", value)
		}
		q.Requests = new(uint32(n))
	case "overage_budget":
		ratio, err := api.ParsePercent(value)
		if err != nil {
			return fmt.Errorf("overage_budget: %w", err)
		}
		q.OverageBudget = &ratio
	case "mode":
		if value != "shadow" && value != "enforce" {
			return fmt.Errorf("mode=%s: want shadow or enforce", value)
		}
		q.Mode = value
	default:
		return fmt.Errorf("%q: want requests=N, overage_budget=P%% or mode=shadow|enforce", arg)
	}
	return nil
}

func newLimitsUnset(p process) *cobra.Command {
	c := &limitsChange{name: api.UnsetOverride}
	cmd := c.command(p, &cobra.Command{
		Use:     "unset RULE",
		Short:   "End the overrides of a rule",
		Long:    "End all overrides of a rule. What they lowered is in force until all regions have acknowledged the end.",
		Example: "  rld limits unset login",
		Args:    one("rules", "the path of one rule, or the name of its limit", ""),
	}, func(args []string) error {
		c.request.Rule = args[0]
		return nil
	})
	addDomainFlag(cmd, c)
	return cmd
}

// limitsQuery returns the query for the limits of the cluster, as text formats
// them.
func limitsQuery(text func(*api.LimitsAnswer) string) query[api.LimitsAnswer] {
	return query[api.LimitsAnswer]{
		path:  limitsPath,
		lacks: func(a *api.LimitsAnswer) string { return unless(!a.At.IsZero(), "time") },
		text:  text,
	}
}

func newLimitsList(p process) *cobra.Command {
	return usageCodes(limitsQuery(limitsText).command(p, &cobra.Command{
		Use:   "list",
		Short: "Show the limits of the cluster: versions, sources of domains, overrides",
		Long: "Show which version of the rules is applied, what a change waits for, whether each domain comes\n" +
			"from the control log or from files, and all overrides, as the daemon that answers knows them.\n" +
			"The exit code is 0 when there is an answer, 2 when there is none, and 64 for wrong usage.",
		Example: "  rld limits list\n" +
			"  rld limits list -o json",
		Args: cobra.NoArgs,
	}))
}

// limitsText formats the limits of the cluster.
func limitsText(a *api.LimitsAnswer) string {
	if a.Alone {
		return alone
	}
	var b strings.Builder
	files := !a.Begun && a.Fault != ""
	switch {
	case files:
		fmt.Fprintf(&b, "! this daemon has the limits of its files, without those of the control log and its overrides: %s\n", shortened(printable(a.Fault)))
	case !a.Begun:
		b.WriteString("The cluster has not begun: each daemon has the limits of its files.\n")
	case a.Rules == "":
		b.WriteString("No rules were applied: each daemon has the limits of its files.\n")
	default:
		fmt.Fprintf(&b, "Rules: version %s. This daemon uses version %s of the record.\n", printable(a.Rules), or(a.InUse, "-"))
	}
	if a.Pending != "" {
		waits := few(printables(a.Waits))
		if len(a.Waits) == 0 {
			waits = "regions that this daemon does not know yet: ask again"
		}
		fmt.Fprintf(&b, "! version %s waits for %s\n", printable(a.Pending), waits)
	}
	if a.Fault != "" && !files {
		fmt.Fprintf(&b, "! this daemon cannot use the limits of the control log, and keeps the former ones: %s\n", shortened(printable(a.Fault)))
	}
	if a.FilesFault != "" {
		fmt.Fprintf(&b, "! the files of this daemon are invalid: %s\n", shortened(printable(a.FilesFault)))
	}
	if len(a.Domains) > 0 {
		t := newTable("DOMAIN", "SOURCE", "NOTE")
		for _, d := range a.Domains {
			source, note := "files", "-"
			switch {
			case d.Source == "log":
				source = "control log"
			case d.Agreed:
				source = "files, adopted"
			}
			switch {
			case d.Overruled && d.Source != "log":
				note = "the files of this daemon differ: only what is lower in them acts"
			case d.Overruled:
				note = "the files of this daemon differ, and do not count"
			}
			t.row(or(d.Domain, "-"), source, note)
		}
		b.WriteString("\n" + t.String())
	}
	if len(a.Overrides) > 0 {
		b.WriteString("\n" + overridesTable(a.Overrides))
	}
	return b.String()
}

// overridesTable lists overrides.
func overridesTable(all []api.LimitsOverride) string {
	t := newTable("OVERRIDE", "OF", "SETTING", "STATE", "FROM", "UNTIL", "AUTHOR", "REASON")
	for i := range all {
		o := &all[i]
		of := o.Domain + " " + o.Rule
		if o.Key != "" {
			of = "key " + o.Key
		}
		version, state := or(o.Version, "-"), strings.ReplaceAll(string(o.State), "_", " ")
		if o.Emergency {
			state += ", emergency"
		}
		t.row(version, printable(of), or(o.Setting, "-"), or(state, "-"), timeShown(o.From), timeShown(o.Until), or(o.Author, "-"), or(o.Reason, "-"))
	}
	return t.String()
}

func newKey(p process) *cobra.Command {
	return usageCodes(group("key", "Block and reset single keys in the whole cluster", newKeyBlock(p), newKeyUnblock(p), newKeyReset(p), newKeyList(p)))
}

// oneKey requires one argument.
var oneKey = one("keys", "the hash of one key, from rld top or rld explain", "")

func newKeyBlock(p process) *cobra.Command {
	c := &limitsChange{name: api.BlockKey}
	var o overrideFlags
	cmd := c.command(p, &cobra.Command{
		Use:   "block KEY",
		Short: "Deny all calls of a key for some time",
		Long: "Deny each call of a key, at all daemons, in every mode of its rule. KEY is its hash, which rld\n" +
			"top and rld explain show. The hash depends on the window and the algorithm of the rule: it is\n" +
			"another one after these change. It needs cluster.secret_file, without which daemons hash keys\n" +
			"differently.",
		Example: "  rld key block 0123456789abcdef0123456789abcdef --for 2h --reason abuse",
		Args:    oneKey,
	}, func(args []string) error {
		c.request.Key = args[0]
		return o.prepare(c)
	})
	o.add(c, cmd)
	return cmd
}

func newKeyUnblock(p process) *cobra.Command {
	c := &limitsChange{name: api.UnblockKey}
	return c.command(p, &cobra.Command{
		Use:     "unblock KEY",
		Short:   "End the block of a key",
		Long:    "End the block of a key. It is denied until all regions have acknowledged that.",
		Example: "  rld key unblock 0123456789abcdef0123456789abcdef",
		Args:    oneKey,
	}, func(args []string) error {
		c.request.Key = args[0]
		return nil
	})
}

func newKeyReset(p process) *cobra.Command {
	c := &limitsChange{name: api.ResetKey}
	return c.command(p, &cobra.Command{
		Use:   "reset KEY",
		Short: "Forget the hits of a key, once",
		Long: "Forget the hits of a key in the windows that run now, at all daemons: its limit is as if unused.\n" +
			"Each reset admits at most the limit once more. KEY and what it needs are as for rld key block. A\n" +
			"reset cannot be undone, and acts at each daemon that learns of it.",
		Example: "  rld key reset 0123456789abcdef0123456789abcdef --reason 'a faulty client'",
		Args:    oneKey,
	}, func(args []string) error {
		c.request.Key = args[0]
		return nil
	})
}

func newKeyList(p process) *cobra.Command {
	return limitsQuery(keysText).command(p, &cobra.Command{
		Use:   "list",
		Short: "List the keys that are blocked, or were reset",
		Long: "List the overrides of keys. The exit code is 0 when there is an answer, 2 when there is none,\n" +
			"and 64 for wrong usage.",
		Example: "  rld key list",
		Args:    cobra.NoArgs,
	})
}

// keysText formats the overrides of keys.
func keysText(a *api.LimitsAnswer) string {
	var keys []api.LimitsOverride
	for _, o := range a.Overrides {
		if o.Key != "" {
			keys = append(keys, o)
		}
	}
	switch {
	case a.Alone:
		return alone
	case len(keys) == 0:
		return "No key is blocked, and none was reset.\n"
	}
	return overridesTable(keys)
}
