package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/georld/rld/config"
	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
)

func newLimits(p process) *cobra.Command {
	return group("limits", "Work on files of limits", newLimitsCheck(p))
}

func newLimitsCheck(p process) *cobra.Command {
	var merge bool
	var form outputForm
	cmd := &cobra.Command{
		Use:   "check PATH",
		Short: "Say whether a daemon would take a file or a folder of limits",
		Long: "Read limits as a daemon does and list every fault with its place. The exit code is 0\n" +
			"when they would be taken, 1 when they would be refused, 2 when the question is wrong.",
		Example: "  rld limits check limits/\n" +
			"  rld limits check limits.yaml -o json",
		Args: one("paths", "one file or folder of limits", "the path is empty, use a file or folder of limits"),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := limitsConfig(p.environ, args[0], merge)
			if err != nil {
				return exitWith(exitNoneOf, err)
			}
			return newLimitsReport(c).print(p, form)
		},
	}
	cmd.Flags().BoolVar(&merge, "merge-domains", false,
		"let several files hold rules of one domain (MERGE_DOMAIN_CONFIG, RLD_MERGE_DOMAINS)")
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
	Domains  []string   `json:"domains"`
	Rules    int        `json:"rules"`
	Faults   []faultRow `json:"faults"`
	Warnings []string   `json:"warnings"` // about the files, not about their content

	unread error // the files cannot be read
	found  yamlpos.Diagnostics
}

// faultRow is one yamlpos.Diagnostic.
type faultRow struct {
	Severity string `json:"severity"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
	Source   string `json:"source,omitempty"`
}

func newLimitsReport(c config.Limits) *limitsReport {
	// Lists are there in JSON even when they are empty.
	r := &limitsReport{Domains: []string{}, Faults: []faultRow{}, Warnings: []string{}}
	files, warnings, err := config.Files(c.Path, c.Names)
	r.Files = len(files)
	r.Warnings = append(r.Warnings, warnings...)
	if err != nil {
		r.unread = err
		r.Faults = append(r.Faults, faultRow{Severity: yamlpos.Error.String(), Message: err.Error()})
		return r
	}
	var set *rules.Set
	set, r.found = limits.Parse(files, limits.Options{MergeDomains: c.MergeDomains})
	for _, d := range r.found {
		r.Faults = append(r.Faults, faultRow{
			d.Severity.String(), d.File, d.Line, d.Column, d.Message, d.Hint, d.Source,
		})
	}
	if set != nil {
		r.OK, r.Domains, r.Rules = true, set.Domains(), len(set.Rules())
	}
	return r
}

// print writes the report; faults go to standard error, like those of a
// compiler.
func (r *limitsReport) print(p process, form outputForm) error {
	err := error(nil)
	if form == formJSON {
		err = indented(p.out, r)
	} else {
		err = r.table(p.out, p.err)
	}
	if err != nil {
		return exitWith(exitNoneOf, err)
	}
	if !r.OK {
		return &exitError{code: exitNo}
	}
	return nil
}

func (r *limitsReport) table(out, faults io.Writer) error {
	var errs []error
	say := func(w io.Writer, format string, args ...any) {
		_, err := fmt.Fprintf(w, format, args...)
		errs = append(errs, err)
	}
	for _, w := range r.Warnings {
		say(faults, "warning: %s\n", w)
	}
	say(faults, "%s", r.found.String())
	switch {
	case r.unread != nil:
		say(faults, "rld: %v\n", r.unread)
	case !r.OK:
		say(faults, "rld: these limits would be refused: %s\n", plural(r.refusals(), "fault"))
	default:
		say(out, "ok: %s in %s from %s\n", plural(r.Rules, "rule"), plural(len(r.Domains), "domain"),
			plural(r.Files, "file"))
	}
	return errors.Join(errs...)
}

// refusals counts the faults that refuse the limits.
func (r *limitsReport) refusals() int { return len(r.found) - len(r.found.Warnings()) }

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
