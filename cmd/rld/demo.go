package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/georld/rld/demo"
)

// maxDemoScript is the largest file of commands that is read.
const maxDemoScript = 1 << 20

// demoInput holds the flags of `rld demo` that are not in demo.Options.
type demoInput struct {
	commands string // -e
	file     string // --script
	log      string // --log
}

func newDemo(p process) *cobra.Command {
	o := demo.Default()
	var in demoInput
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run daemons of several regions in this process, and watch them",
		Long: "Run real daemons of several regions in this process, with a network between the regions\n" +
			"that delays and can be cut, and clients that call all the time. A table shows the hits\n" +
			"admitted against each limit and how old the regions' views of each other are. Commands\n" +
			"are typed below it or come from -e or --script, separated by semicolons or lines:\n\n" +
			strings.Join(demo.HelpLines(), "\n") + "\n\n" +
			"Without a terminal there is a line a second. The end of the input does not end the demo;\n" +
			"SIGTERM, SIGINT, quit and --for do. The exit code is 1 when a command of the script failed.",
		Example: "  rld demo\n" +
			"  rld demo --regions us-east,eu-west --daemons 2 --wan fast --traffic 2000\n" +
			"  rld demo --for 30s --json -e 'sleep 10; cut eu-west; sleep 10; heal'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			return runDemo(cmd, p, o, in)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Regions, "regions", o.Regions, "names of the regions; us-, eu-, ap-, sa- and af- are places")
	f.IntVar(&o.Daemons, "daemons", o.Daemons, "daemons a region")
	f.Var(&o.WAN, "wan", "distance between the regions: global, fast (5ms) or none")
	f.IntVar(&o.Traffic, "traffic", o.Traffic, "calls of the clients, a second")
	f.DurationVar(&o.For, "for", o.For, "end after this time; 0s: not before quit or a signal")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "seed of the traffic")
	f.BoolVar(&o.JSON, "json", false, "print a JSON object a second, and a last one")
	f.StringVarP(&in.commands, "execute", "e", "", "commands to run, separated by semicolons")
	f.StringVar(&in.file, "script", "", "file of commands to run")
	f.StringVar(&o.GRPC, "grpc-addr", o.GRPC, "gRPC address of the first daemon; port 0 chooses a free one")
	f.StringVar(&o.HTTP, "http-addr", o.HTTP, "HTTP address of the first daemon")
	f.StringVar(&o.Admin, "admin-addr", o.Admin, "admin address of the first daemon")
	f.StringVar(&in.log, "log", "", "write the logs of the daemons to this file")
	return cmd
}

func runDemo(cmd *cobra.Command, p process, o demo.Options, in demoInput) (err error) {
	if o.Script, err = in.script(&o); err != nil {
		return exitWith(exitNoneOf, err)
	}
	o.In, o.Out, o.Err, o.Program, o.Version = os.Stdin, p.out, p.err, p.program, version()
	if f, ok := p.out.(*os.File); ok {
		if _, terminal := demo.TerminalRows(f); terminal {
			o.Size = func() (int, bool) { return demo.TerminalRows(f) }
		}
	}
	if in.log != "" {
		f, err := os.Create(in.log)
		if err != nil {
			return exitWith(exitNoneOf, err)
		}
		defer f.Close() // a log that is not whole is no reason to fail
		o.Log = slog.New(slog.NewTextHandler(f, nil))
	}
	ctx, stopped := stopSignals(cmd.Context(), os.Exit)
	defer stopped()
	return exitWith(exitNo, demo.Run(ctx, o))
}

// script reads the commands that were given.
func (in *demoInput) script(o *demo.Options) ([]demo.Command, error) {
	switch {
	case in.commands != "" && in.file != "":
		return nil, errors.New("-e and --script: give one of them")
	case in.file == "":
		return demo.ReadScript("-e", in.commands, o.Names())
	}
	data, err := readBounded(in.file, maxDemoScript)
	if err != nil {
		return nil, fmt.Errorf("--script: %w", err)
	}
	return demo.ReadScript(in.file, string(data), o.Names())
}
