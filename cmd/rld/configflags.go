package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/georld/rld/config"
)

// settingFlags is what a command line says of a daemon's settings.
type settingFlags struct {
	file  string
	given map[string]string // by flag
}

// groupOf is the annotation of a flag that is a setting: its heading.
const groupOf = "rld_group"

// add adds --config and a flag for each setting that has one. Their texts are
// kept as they are: package config reads them, beside what other sources say.
// The help of the command lists them under headings, or only says whose they
// are.
func (s *settingFlags) add(cmd *cobra.Command, listed bool) {
	s.given = make(map[string]string)
	fs := cmd.Flags()
	fs.StringVar(&s.file, "config", "", "settings file (RLD_CONFIG)")
	for _, f := range config.Fields() {
		if f.Flag == "" {
			continue
		}
		flag := fs.VarPF(&settingFlag{f, s.given}, f.Flag, "", f.Usage)
		flag.Annotations = map[string][]string{groupOf: {f.Group}}
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

// String returns what was given, or what holds without it.
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

// Type is what the help calls the value.
func (f *settingFlag) Type() string { return f.field.Kind }

// groupedUsage prints the usage of a command that takes settings: its own
// flags, then the settings if they are listed, by their groups.
func groupedUsage(cmd *cobra.Command, listed bool) error {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	groups := make(map[string]*pflag.FlagSet)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		group := f.Annotations[groupOf]
		if group == nil {
			own.AddFlag(f)
			return
		}
		if groups[group[0]] == nil {
			groups[group[0]] = pflag.NewFlagSet("", pflag.ContinueOnError)
		}
		groups[group[0]].AddFlag(f)
	})
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n\nExamples:\n%s\n\nFlags:\n%s", cmd.UseLine(), cmd.Example, own.FlagUsages())
	if !listed {
		b.WriteString("\nand the settings of rld serve, see rld serve --help\n")
	}
	// Headings and flags stand in the order of the settings file.
	for _, f := range config.Fields() {
		if fs := groups[f.Group]; fs != nil && listed {
			fmt.Fprintf(&b, "\n%s:\n%s", f.Group, inFieldOrder(fs).FlagUsages())
			delete(groups, f.Group)
		}
	}
	_, err := fmt.Fprint(cmd.OutOrStderr(), b.String())
	return err
}

// inFieldOrder returns the same flags in the order of the settings.
func inFieldOrder(fs *pflag.FlagSet) *pflag.FlagSet {
	ordered := pflag.NewFlagSet("", pflag.ContinueOnError)
	ordered.SortFlags = false
	for _, f := range config.Fields() {
		if flag := fs.Lookup(f.Flag); f.Flag != "" && flag != nil {
			ordered.AddFlag(flag)
		}
	}
	return ordered
}
