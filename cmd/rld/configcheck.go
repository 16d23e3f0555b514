package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/config"
	"github.com/georld/rld/daemon"
	"github.com/georld/rld/internal/suggest"
)

func newConfigCheck(p process) *cobra.Command {
	run := func(_ context.Context, s config.Sources) error { return checkConfig(p, s, time.Now()) }
	return settingsCommand(p, false, run, &cobra.Command{
		Use:   "check",
		Short: "Check whether a daemon accepts its settings",
		Long: "Read the settings as a daemon does, with the limits, secrets, keys and certificates that\n" +
			"they name, and list every fault with its place. The exit code is 0 when a daemon accepts\n" +
			"them, 1 when it refuses them, 2 for wrong usage.",
		Example: "  rld config check --config rld.yaml\n" +
			"  rld config check --config rld.yaml --region eu-west-1",
	})
}

func checkConfig(p process, s config.Sources, now time.Time) error {
	checked, err := config.Check(s, now)
	if err != nil {
		return exitWith(exitNo, err)
	}
	r := configReport{Checked: checked}
	if c := checked.Config; !r.faultIn("limits.") && !c.Limits.XDS.On() {
		r.limits = checkLimits(&c.Limits, daemon.LimitsOptions(&c))
	}
	return r.print(p)
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
func (r *configReport) print(p process) error {
	faults := warningText(r.warnings())
	for _, f := range r.Faults {
		faults += f.Error() + "\n"
	}
	content := cmp.Or(r.Config.Limits.Source(), "the embedded examples")
	if r.limits != nil {
		if r.limits.unread != nil {
			faults += fmt.Sprintf("limits.path (%s): %v\n", r.Origin("limits.path"), r.limits.unread)
		}
		faults += r.limits.found.String()
		if r.Config.Limits.Path != "" {
			content = r.limits.content()
		}
	}
	if n := r.faults(); n > 0 {
		faults += fmt.Sprintf("rld: a daemon would refuse these settings: %s\n", suggest.Plural(n, "fault"))
		return cmp.Or(p.write("", faults), error(&exitError{code: exitNo}))
	}
	return p.write(fmt.Sprintf("%s: ok\n  settings  %s\n  cluster   %s\n  limits    %s\n%s",
		cmp.Or(r.File, "settings"), r.settings(), r.cluster(), content, r.listeners()), faults)
}

func (r *configReport) warnings() []string {
	out := r.Warnings
	for _, l := range r.Config.Exposed() {
		out = append(out, l+" answers other machines in plain text")
	}
	for _, l := range r.Config.PlainTokens() {
		out = append(out, l+" accepts tokens in plain text, which a reader of the network can use: give it TLS")
	}
	if r.limits != nil {
		out = append(out, r.limits.Warnings...)
	}
	return out
}

// listeners returns a line for each listener: what protects it.
func (r *configReport) listeners() string {
	var b strings.Builder
	for _, l := range r.Config.Protections() {
		fmt.Fprintf(&b, "  %-9s %s: %s\n", strings.TrimSuffix(l.Setting, ".addr"), l.Value, l.By)
	}
	return b.String()
}

func (r *configReport) settings() string {
	all, given := r.Settings(), 0
	for _, s := range all {
		if s.Origin != config.OriginDefault {
			given++
		}
	}
	return fmt.Sprintf("%d given, %d at their default", given, len(all)-given)
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
	return fmt.Sprintf("%s in %s; %s; %s with %s; %s", name, c.Region, suggest.Plural(len(c.Swim.Seeds), "seed"),
		suggest.Plural(regions, "other region"), suggest.Plural(peers, "peer"), streams)
}
