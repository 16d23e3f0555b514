package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/georld/rld/config"
	"github.com/georld/rld/daemon"
)

func newServe(p process) *cobra.Command {
	run := func(ctx context.Context, s config.Sources) error { return serve(ctx, p, s) }
	return settingsCommand(p, true, run, &cobra.Command{
		Use:   "serve",
		Short: "Run a daemon",
		Long: "Run a daemon that answers gRPC and HTTP and follows its limits as they change. With a\n" +
			"region it is one of a cluster, else it is alone.\n\n" +
			"The value of a setting is that of its flag, else of its RLD_ variable (--grpc-addr is\n" +
			"RLD_GRPC_ADDR), else of the variable of envoyproxy/ratelimit for it, else of the\n" +
			"settings file; rld config print shows the result. SIGHUP reads the limits again, SIGTERM\n" +
			"and SIGINT drain and stop, and a second one stops at once.",
		Example: "  rld serve --limits /etc/rld/limits\n" +
			"  rld serve --config rld.yaml --log-level debug",
	})
}

// serve runs a daemon until a signal ends it.
func serve(ctx context.Context, p process, s config.Sources) error {
	// The reader of our log or banner may go away. Go would end the process
	// then, and a daemon must not die of a closed pager: unread lines are lost.
	signal.Ignore(syscall.SIGPIPE)
	loaded, err := config.Load(s)
	if err != nil {
		return exitWith(exitNoneOf, refused(err))
	}
	log := newLogger(p.err, loaded.Config.Log)
	for _, w := range loaded.Warnings {
		log.Warn(w)
	}
	ctx, stopped := stopSignals(ctx, func(code int) {
		log.Warn("a second signal: calls in flight are cut off")
		os.Exit(code)
	})
	defer stopped()
	var running atomic.Pointer[daemon.Handle]
	defer onSignal(func(os.Signal) {
		if h := running.Load(); h != nil {
			h.Reload()
		}
	}, syscall.SIGHUP)()
	return exitWith(exitNo, daemon.Run(ctx, daemon.Options{
		Config:     loaded.Config,
		LimitsFrom: loaded.Origin("limits.path"),
		XDSHeaders: loaded.XDSHeaders,
		Log:        log,
		Out:        p.out,
		Program:    p.program,
		Version:    version(),
		Started:    running.Store,
	}))
}

// refused begins a list of faults with a line of its own.
func refused(err error) error {
	var all config.Faults
	if errors.As(err, &all) && len(all) > 1 {
		return fmt.Errorf("the settings are refused:\n%w", err)
	}
	return err
}

func newLogger(w io.Writer, l config.Log) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.Level)) // Validate passes only levels of slog
	o := &slog.HandlerOptions{Level: level}
	if l.Format == config.FormatJSON {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
