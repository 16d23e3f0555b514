package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/georld/rld/config"
)

func newConfig(p process) *cobra.Command {
	return group("config", "Work on the settings of a daemon", newConfigCheck(p), newConfigPrint(p))
}

func newConfigPrint(p process) *cobra.Command {
	var settings settingFlags
	var o config.PrintOptions
	var form outputForm
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the settings that a daemon would have",
		Long: "Print what flags, RLD_ variables and the settings file come to, as a settings file that\n" +
			"says the same by itself. Secrets are in files of their own, of which the paths are\n" +
			"shown and nothing else.\n\n" +
			"With --show-origin each setting says whether a flag, a variable, a line of the file or\n" +
			"the default gave it; JSON is then {value, origin} by name, for programs.",
		Example: "  rld config print --config rld.yaml --effective --show-origin\n" +
			"  rld config print --config rld.yaml --log-level debug > debug.yaml",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := settings.sources(cmd, p)
			if err != nil {
				return exitWith(exitNoneOf, err)
			}
			o.JSON = form == formJSON
			return exitWith(exitNoneOf, printConfig(p, s, o))
		},
	}
	cmd.Flags().BoolVar(&o.Effective, "effective", false, "all settings, not only those that differ from their default")
	cmd.Flags().BoolVar(&o.Origins, "show-origin", false, "print the source of each setting")
	addFormFlag(cmd.Flags(), &form, formYAML, "settings")
	settings.add(cmd, false)
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
	var errs []error
	for _, w := range loaded.Warnings {
		_, err := fmt.Fprintf(p.err, "warning: %s\n", w)
		errs = append(errs, err)
	}
	_, err = fmt.Fprint(p.out, text)
	return errors.Join(append(errs, err)...)
}

// settingFlags holds the settings of a command line.
type settingFlags struct {
	file  string
	given map[string]string // by flag
}

// add adds --config and a flag for each setting that has one. It keeps their
// texts: package config reads them beside the other sources. The command's help
// lists them under headings, or refers to the command that does.
func (s *settingFlags) add(cmd *cobra.Command, listed bool) {
	s.given = make(map[string]string)
	fs := cmd.Flags()
	fs.StringVar(&s.file, "config", "", "settings file (RLD_CONFIG)")
	for _, f := range config.Fields() {
		if f.Flag == "" {
			continue
		}
		flag := fs.VarPF(&settingFlag{f, s.given}, f.Flag, "", f.Usage)
		if f.Kind == "bool" {
			flag.NoOptDefVal = "true"
		}
	}
	cmd.SetUsageFunc(func(cmd *cobra.Command) error { return groupedUsage(cmd, listed) })
}

// sources returns where the settings are to be looked for.
func (s *settingFlags) sources(cmd *cobra.Command, p process) (config.Sources, error) {
	if s.file == "" && cmd.Flags().Changed("config") {
		return config.Sources{}, errors.New("--config is empty: give a path, or leave the flag out")
	}
	return config.Sources{Flags: s.given, Environ: p.environ, File: s.file}, nil
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

// groupedUsage prints the usage of a command that takes settings: its own
// flags, then the settings if they are listed, by their groups, all in the
// order of the settings file.
func groupedUsage(cmd *cobra.Command, listed bool) error {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, setting := f.Value.(*settingFlag); !setting {
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
