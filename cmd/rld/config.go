package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/georld/rld/config"
)

func newConfig(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Work on the settings of a daemon",
		Args:  cobra.ArbitraryArgs,
		RunE:  noCommand,
	}
	cmd.AddCommand(newConfigCheck(p), newConfigPrint(p))
	return cmd
}

func newConfigPrint(p process) *cobra.Command {
	var settings settingFlags
	var o config.PrintOptions
	form := formYAML
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
			o.JSON = form == formSettingsJSON
			return exitWith(exitNoneOf, printConfig(p, s, o))
		},
	}
	cmd.Flags().BoolVar(&o.Effective, "effective", false, "all settings, not only those that differ from their default")
	cmd.Flags().BoolVar(&o.Origins, "show-origin", false, "say of each setting where it came from")
	cmd.Flags().VarP(&form, "output", "o", "form of the settings: yaml or json")
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

// settingsForm is the value of -o where settings are printed.
type settingsForm string

// The forms of settings.
const (
	formYAML         settingsForm = "yaml"
	formSettingsJSON settingsForm = "json"
)

// String, Set and Type make it a flag.
func (f *settingsForm) String() string { return string(*f) }

// Set takes one of the forms.
func (f *settingsForm) Set(s string) error {
	switch v := settingsForm(s); v {
	case formYAML, formSettingsJSON:
		*f = v
		return nil
	}
	return fmt.Errorf("say %s or %s", formYAML, formSettingsJSON)
}

// Type is what the help calls the value.
func (f *settingsForm) Type() string { return "form" }
