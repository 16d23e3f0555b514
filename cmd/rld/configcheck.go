package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/config"
)

func newConfigCheck(p process) *cobra.Command {
	var settings settingFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say whether a daemon would take its settings",
		Long: "Read the settings as a daemon does, with the limits, secrets, keys and certificates that\n" +
			"they name, and list every fault with its place. The exit code is 0 when a daemon would\n" +
			"take them, 1 when it would refuse them, 2 when the question is wrong.",
		Example: "  rld config check --config rld.yaml\n" +
			"  rld config check --config rld.yaml --region eu-west-1",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := settings.sources(cmd, p)
			if err != nil {
				return exitWith(exitNoneOf, err)
			}
			return checkConfig(p, s, time.Now())
		},
	}
	settings.add(cmd, false)
	return cmd
}

func checkConfig(p process, s config.Sources, now time.Time) error {
	checked, err := config.Check(s, now)
	if err != nil {
		return exitWith(exitNo, err)
	}
	r := configReport{Checked: checked}
	if c := checked.Config.Limits; c.Path != "" && !r.faultIn("limits.") {
		r.limits = newLimitsReport(c)
	}
	if err := r.print(p.out, p.err); err != nil {
		return exitWith(exitNoneOf, err)
	}
	if r.faults() > 0 {
		return &exitError{code: exitNo}
	}
	return nil
}

// configReport is the result of checking settings.
type configReport struct {
	*config.Checked
	limits *limitsReport // nil where there are none to be read
}

// faultIn reports whether a setting of a section has a fault.
func (r *configReport) faultIn(section string) bool {
	for _, f := range r.Faults {
		if strings.HasPrefix(f.Field, section) {
			return true
		}
	}
	return false
}

// faults counts the settings that a daemon would refuse.
func (r *configReport) faults() int {
	n := len(r.Faults)
	switch {
	case r.limits == nil:
	case r.limits.unread != nil:
		n++
	default:
		n += r.limits.refusals()
	}
	return n
}

// print writes the report; faults go to standard error, like those of a
// compiler.
func (r *configReport) print(out, faults io.Writer) error {
	var errs []error
	say := func(w io.Writer, format string, args ...any) {
		_, err := fmt.Fprintf(w, format, args...)
		errs = append(errs, err)
	}
	for _, w := range r.warnings() {
		say(faults, "warning: %s\n", w)
	}
	for _, f := range r.Faults {
		say(faults, "%v\n", f)
	}
	if r.limits != nil {
		if r.limits.unread != nil {
			say(faults, "limits.path (%s): %v\n", r.Origin("limits.path"), r.limits.unread)
		}
		say(faults, "%s", r.limits.found.String())
	}
	if n := r.faults(); n > 0 {
		say(faults, "rld: these settings would be refused: %s\n", plural(n, "fault"))
		return errors.Join(errs...)
	}
	say(out, "%s: ok\n", cmp.Or(r.File, "settings"))
	say(out, "  settings  %s\n", r.settings())
	say(out, "  cluster   %s\n", r.cluster())
	if r.limits == nil {
		say(out, "  limits    the embedded examples\n")
	} else {
		say(out, "  limits    %s in %s from %s\n", plural(r.limits.Rules, "rule"),
			plural(len(r.limits.Domains), "domain"), plural(r.limits.Files, "file"))
	}
	return errors.Join(errs...)
}

func (r *configReport) warnings() []string {
	out := r.Warnings
	for _, l := range r.Config.Exposed() {
		out = append(out, l+" answers other machines in plain text")
	}
	if r.limits != nil {
		out = append(out, r.limits.Warnings...)
	}
	return out
}

func (r *configReport) settings() string {
	given, usual := 0, 0
	for _, s := range r.Settings() {
		if s.Origin == config.OriginDefault {
			usual++
		} else {
			given++
		}
	}
	return fmt.Sprintf("%d given, %d at their default", given, usual)
}

func (r *configReport) cluster() string {
	c := &r.Config
	if c.Region == "" {
		return "none: a daemon alone"
	}
	name, err := c.DaemonName()
	if err != nil {
		name = "?" // a fault, reported above
	}
	regions, peers := 0, 0
	for _, other := range c.Regions {
		if other.Name != c.Region {
			regions++
			peers += len(other.Peers)
		}
	}
	streams := "plain streams"
	if c.Peer.TLS.On() {
		streams = "streams with TLS"
	}
	return fmt.Sprintf("%s in %s; %s; %s with %s; %s", name, c.Region, plural(len(c.Swim.Seeds), "seed"),
		plural(regions, "other region"), plural(peers, "peer"), streams)
}
