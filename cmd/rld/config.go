package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/georld/rld/cmd/rld/importer"
	"github.com/georld/rld/config"
	"github.com/georld/rld/quota/overage"
)

func newConfig(p process) *cobra.Command {
	return group("config", "Work on the settings of a daemon", newConfigCheck(p), newConfigPrint(p),
		newSchema(p, "a settings file", config.Schema))
}

// newSchema returns the command that prints the schema of a kind of file.
func newSchema(p process, of string, schema func() []byte) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of " + of + ", for editors",
		Long: "Print the JSON Schema (draft 2020-12) of " + of + ". Editors complete and check files by\n" +
			"it. It knows less than check, which is what a daemon accepts.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return p.write(string(schema()), "") },
	}
}

func newConfigPrint(p process) *cobra.Command {
	var o config.PrintOptions
	var form formFlag
	run := func(_ context.Context, s config.Sources) error {
		o.JSON = form.json
		return exitWith(exitNoneOf, printConfig(p, s, o))
	}
	cmd := settingsCommand(p, false, run, &cobra.Command{
		Use:   "print",
		Short: "Print the settings that a daemon would have",
		Long: "Print the result of flags, RLD_ variables and the settings file, as a settings file with\n" +
			"the same effect. Secrets are in files of their own; only the paths of these are printed.\n\n" +
			"With --show-origin each setting has its source: a flag, a variable, a line of the file\n" +
			"or the default; JSON is then {value, origin} by name, for programs.",
		Example: "  rld config print --config rld.yaml --effective --show-origin\n" +
			"  rld config print --config rld.yaml --log-level debug > debug.yaml",
	})
	cmd.Flags().BoolVar(&o.Effective, "effective", false, "all settings, not only those that differ from their default")
	cmd.Flags().BoolVar(&o.Origins, "show-origin", false, "print the source of each setting")
	addFormFlag(cmd.Flags(), &form, formYAML, "settings")
	return cmd
}

func printConfig(p process, s config.Sources, o config.PrintOptions) error {
	loaded, err := config.Load(s)
	if err != nil {
		return refused(err)
	}
	text, err := loaded.Print(o)
	if err != nil {
		return err
	}
	return p.write(text, warningText(loaded.Warnings))
}

// settingsCommand fills in a command that takes settings: it adds --config and
// a flag for each setting that has one, and passes the sources of settings to
// run. The flags keep their texts: package config reads them beside the other
// sources. The command's help lists them under headings, or refers to the
// command that does.
func settingsCommand(
	p process, listed bool, run func(context.Context, config.Sources) error, cmd *cobra.Command,
) *cobra.Command {
	s := config.Sources{Flags: make(map[string]string), Environ: p.environ, Upstream: p.upstream()}
	fs := cmd.Flags()
	fs.StringVar(&s.File, "config", "", "settings file (RLD_CONFIG)")
	for _, f := range config.Fields() {
		if f.Flag == "" {
			continue
		}
		flag := fs.VarPF(&settingFlag{f, s.Flags}, f.Flag, "", f.Usage)
		if f.Kind == "bool" {
			flag.NoOptDefVal = "true"
		}
	}
	for name, problem := range config.GoneFlags() {
		flag := fs.VarPF(goneFlag(problem), name, "", "")
		flag.NoOptDefVal, flag.Hidden = "true", true
	}
	cmd.Args = cobra.NoArgs
	cmd.SetUsageFunc(func(cmd *cobra.Command) error { return groupedUsage(cmd, listed) })
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if s.File == "" && fs.Changed("config") {
			return exitWith(exitNoneOf, errors.New("--config is empty: give a path, or leave the flag out"))
		}
		return run(cmd.Context(), s)
	}
	return cmd
}

// settingFlag is a pflag.Value that keeps the text.
type settingFlag struct {
	field config.Field
	given map[string]string
}

// String returns the given value, or the default.
func (f *settingFlag) String() string {
	if s, ok := f.given[f.field.Flag]; ok {
		return s
	}
	return f.field.Default
}

// Set keeps the text; the last one counts.
func (f *settingFlag) Set(s string) error {
	f.given[f.field.Flag] = s
	return nil
}

// Type is the name of the value in the help.
func (f *settingFlag) Type() string { return f.field.Kind }

// goneFlag is a pflag.Value of a former flag: the text of its error.
type goneFlag string

// String returns no default.
func (goneFlag) String() string { return "" }

// Set returns the error.
func (g goneFlag) Set(string) error { return errors.New(string(g)) }

// Type returns nothing: help does not list the flag.
func (goneFlag) Type() string { return "" }

// groupedUsage prints the usage of a command that takes settings: its own
// flags, then the settings if they are listed, by their groups, all in the
// order of the settings file.
func groupedUsage(cmd *cobra.Command, listed bool) error {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, setting := f.Value.(*settingFlag); !setting && !f.Hidden {
			own.AddFlag(f)
		}
	})
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n\nExamples:\n%s\n\nFlags:\n%s", cmd.UseLine(), cmd.Example, own.FlagUsages())
	if !listed {
		b.WriteString("\nand the settings of rld serve, see rld serve --help\n")
	}
	fields := config.Fields()
	for len(fields) > 0 && listed {
		heading := fields[0].Group
		group := pflag.NewFlagSet("", pflag.ContinueOnError)
		group.SortFlags = false
		for ; len(fields) > 0 && fields[0].Group == heading; fields = fields[1:] {
			if name := fields[0].Flag; name != "" {
				group.AddFlag(cmd.Flags().Lookup(name))
			}
		}
		fmt.Fprintf(&b, "\n%s:\n%s", heading, group.FlagUsages())
	}
	_, err := fmt.Fprint(cmd.OutOrStderr(), b.String())
	return err
}

func newImport(p process) *cobra.Command {
	o := importer.Options{Regions: 2, Staleness: 500 * time.Millisecond}
	var env string
	var form formFlag
	cmd := &cobra.Command{
		Use:   "envoy-ratelimit [PATH]",
		Short: "Report what a deployment of envoyproxy/ratelimit becomes",
		Long: "Read the limits and the environment of a deployment of envoyproxy/ratelimit, and report\n" +
			"what rld loads unchanged, refuses, or reads in another way, the effect of each variable,\n" +
			"and a bound for each limit. PATH is the file or the folder of limits, usually\n" +
			"RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/config; leave it out for limits of an xDS server.\n" +
			"--env names a file with NAME=VALUE lines, a file of Docker Compose, or YAML of\n" +
			"Kubernetes; - is standard input. Nothing is changed. The exit code is 0 when rld can take\n" +
			"the place of the deployment, 1 when it would not start, 2 for wrong usage and for input\n" +
			"that cannot be read.",
		Example: "  rld import envoy-ratelimit /data/ratelimit/config\n" +
			"  rld import envoy-ratelimit config/ --env docker-compose.yml\n" +
			"  kubectl get deployment envoy-ratelimit -o yaml | rld import envoy-ratelimit --env -",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.Staleness < 0:
				return fmt.Errorf("--staleness %s: want an age such as 500ms", o.Staleness)
			case o.Regions < 1 || o.Regions > overage.MaxRegions:
				return fmt.Errorf("--regions %d: want 1 to %d", o.Regions, overage.MaxRegions)
			case len(args) == 0 && env == "":
				return errors.New("nothing to read: give the path of the limits, --env, or both")
			case len(args) == 1:
				if o.Path = args[0]; strings.TrimSpace(o.Path) == "" {
					return errors.New("the path is empty, use a file or folder of limits")
				}
			}
			if env != "" {
				var err error
				if o.Env, err = readAtMost(cmd.InOrStdin(), env, importer.MaxEnvBytes); err != nil {
					return exitWith(exitNoneOf, err)
				}
				o.EnvName = env
			}
			r, err := importer.Run(o)
			if err != nil {
				return exitWith(exitNoneOf, err)
			}
			var stopped error
			if !r.OK {
				stopped = &exitError{code: exitNo}
			}
			if form.json {
				return cmp.Or(exitWith(exitNoneOf, indented(p.out, r)), stopped)
			}
			return cmp.Or(p.write(r.Text()), stopped)
		},
	}
	cmd.Flags().StringVar(&env, "env", "", "file with the environment of the deployment, - for standard input")
	cmd.Flags().IntVar(&o.Regions, "regions", o.Regions, "number of regions that rld will run in, for the bounds")
	cmd.Flags().DurationVar(&o.Staleness, "staleness", o.Staleness, "expected age of the views of other regions, for the bounds")
	addFormFlag(cmd.Flags(), &form, formTable, "report")
	return group("import", "Report what a deployment of another rate limiter becomes", cmd)
}

// readAtMost reads a file, or in for "-", up to a byte more than most.
func readAtMost(in io.Reader, path string, most int64) ([]byte, error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, most+1))
}
