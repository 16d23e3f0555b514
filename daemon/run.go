package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/georld/rld/config"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/node"
	"github.com/georld/rld/telemetry"
)

// Options is what a daemon is run with.
type Options struct {
	// Config must have passed Validate.
	Config config.Config
	// LimitsFrom says who gave the path of the limits, for messages; "" when
	// nobody did.
	LimitsFrom config.Origin
	// Log takes what happens; nil discards it.
	Log *slog.Logger
	// Out takes the banner: where the daemon listens, and calls to paste.
	// Nil discards it.
	Out io.Writer
	// Program is the command that started the daemon, for calls to paste;
	// "" is rld.
	Program string
	// Version is shown by the admin edge and in metrics.
	Version string
	// Reload makes the daemon read its limits again at once (SIGHUP). Nil
	// leaves that to the poll.
	Reload <-chan struct{}
}

// tickInterval is the time between two ticks of the engine.
const tickInterval = 100 * time.Millisecond

// daemon is one running daemon.
type daemon struct {
	cfg        config.Config
	limitsFrom config.Origin
	log        *slog.Logger
	out        io.Writer
	program    string
	version    string

	engine   *Engine
	limits   *limitsSource
	metrics  *telemetry.Metrics
	registry *prometheus.Registry
	state    atomic.Int32 // starting, serving, draining
}

// The states of a daemon.
const (
	starting int32 = iota
	serving
	draining
)

// Run serves until ctx ends, then drains: it says that it is not serving,
// takes no more calls, and waits for those in flight up to Config.Drain. It
// returns nil after an orderly stop, and an error when it could not start,
// when a listener failed, or when calls had to be cut off. All goroutines and
// listeners are gone when it returns.
func Run(ctx context.Context, o Options) error {
	d := &daemon{
		cfg: o.Config, limitsFrom: o.LimitsFrom, log: o.Log, out: o.Out,
		program: cmp.Or(o.Program, "rld"), version: o.Version,
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.out == nil {
		d.out = io.Discard
	}
	if err := d.build(); err != nil {
		return err
	}
	e, err := d.listen()
	if err != nil {
		return err
	}
	return d.serve(ctx, e, o.Reload)
}

// build makes everything that does not listen.
func (d *daemon) build() error {
	ec, err := d.engineConfig()
	if err != nil {
		return err
	}
	if d.engine, err = NewEngine(ec); err != nil {
		return err
	}
	d.registry = prometheus.NewRegistry()
	d.metrics, err = telemetry.New(d.registry, telemetry.Options{Engine: d.engine, Version: d.version})
	if err != nil {
		return err
	}
	d.limits = newLimitsSource(d)
	return d.limits.loadFirst()
}

func (d *daemon) engineConfig() (EngineConfig, error) {
	nc := node.Default()
	nc.NearLimit = d.cfg.Limits.NearRatio
	nc.Clock = hlc.Config{MaxOffset: d.cfg.Clock.MaxOffset}
	ec := EngineConfig{Node: nc, Shards: d.cfg.Shards, MaxKeys: d.cfg.MaxKeys}
	var seed [16]byte
	rand.Read(seed[:]) // never fails
	ec.Seed = [2]uint64{binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:])}
	if d.cfg.Cluster.SecretFile == "" {
		rand.Read(ec.Secret[:])
		return ec, nil
	}
	secret, warnings, err := config.ReadSecret(d.cfg.Cluster.SecretFile)
	if err != nil {
		return ec, err
	}
	for _, w := range warnings {
		d.log.Warn(w)
	}
	sum := sha256.Sum256(append([]byte("rld key hash\x00"), secret...))
	copy(ec.Secret[:], sum[:])
	return ec, nil
}

// serve runs everything until ctx ends or a listener fails, and stops it in
// the reverse order.
func (d *daemon) serve(ctx context.Context, e *edges, reload <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { d.tick(ctx) })
	background.Go(func() { d.limits.watch(ctx, reload) })
	failed := e.start()

	d.state.Store(serving)
	e.grpc.SetServing(true)
	d.banner(e)

	var err error
	select {
	case <-ctx.Done():
		d.state.Store(draining) // before it is said
		d.log.Info("stopping", "waiting at most", d.cfg.Drain)
	case err = <-failed:
		d.state.Store(draining)
		d.log.Error("a listener failed, stopping", "error", err)
	}
	err = errors.Join(err, e.stop(d.cfg.Drain))
	cancel()
	background.Wait()
	if err == nil {
		d.log.Info("stopped")
	}
	return err
}

// tick lets expired keys go and says what is degraded, until ctx ends.
func (d *daemon) tick(ctx context.Context) {
	t := time.NewTicker(tickInterval)
	defer t.Stop()
	look := time.NewTicker(degradedInterval)
	defer look.Stop()
	degraded := newDegradedLog(d.log)
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			d.engine.Tick(d.engine.Now())
		case <-look.C:
			degraded.look(d.engine.Now().Mono, d.engine.Stats())
		}
	}
}

// ready says why the daemon does not take calls, or nil when it does.
func (d *daemon) ready() error {
	switch d.state.Load() {
	case serving:
		return nil
	case draining:
		return errors.New("draining")
	}
	return errors.New("starting")
}

// banner prints where the daemon listens and calls to paste.
func (d *daemon) banner(e *edges) {
	b := &banner{
		program: d.program, version: d.version, edges: e, exposed: d.cfg.Exposed(),
		limits: d.limits.describe(), rules: d.engine.Rules(),
	}
	if _, err := io.WriteString(d.out, b.text()); err != nil {
		d.log.Warn("the banner could not be printed", "error", err)
	}
	d.log.Info("serving", "grpc", e.grpcAddr(), "http", e.httpAddr(), "admin", e.adminAddr(),
		"rules", len(d.engine.Rules().Rules()), "version", d.version)
}
