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
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/georld/rld/config"
	"github.com/georld/rld/daemon/overage"
	"github.com/georld/rld/gossip/swim"
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
	// Reload makes the daemon read its limits and its membership keys again at
	// once (SIGHUP). Nil leaves the limits to the poll.
	Reload <-chan struct{}
	// Secret replaces the secret file.
	Secret []byte
	// Wall reads the wall clock; nil is that of the system.
	Wall func() time.Time
	// Net is how peers are reached; the zero value is the network.
	Net Net
	// Started is called once, when the daemon answers calls.
	Started func(*Handle)
}

// Net is how a daemon reaches its peers, for tests and demonstrations.
type Net struct {
	// Listen opens the listener for streams of peers.
	Listen func(addr string) (net.Listener, error)
	// Dial connects to a peer.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Swim carries membership; its owner closes it.
	Swim swim.Transport
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

	secret  []byte // what the cluster has in common; nil without
	wall    func() time.Time
	net     Net
	started func(*Handle)

	engine   *Engine
	agent    *rightsLoop      // nil for a daemon that holds no rights
	strict   *strict          // likewise
	cluster  *cluster         // nil for a daemon alone
	monitor  *overage.Monitor // likewise
	limits   *limitsSource
	recent   *recentState
	texts    texts
	metrics  *telemetry.Metrics
	registry *prometheus.Registry
	state    atomic.Int32 // starting, serving, draining
	kill     context.CancelCauseFunc
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
		secret: o.Secret, wall: o.Wall, net: o.Net, started: o.Started,
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.out == nil {
		d.out = io.Discard
	}
	defer d.closeAgent()
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
	if d.cfg.Region != "" {
		var err error
		if d.cfg.Name, err = d.cfg.DaemonName(); err != nil {
			return err
		}
	}
	ec, err := d.engineConfig()
	if err != nil {
		return err
	}
	if d.engine, err = NewEngine(ec); err != nil {
		return err
	}
	d.registry = prometheus.NewRegistry()
	o := telemetry.Options{Engine: d.engine, Version: d.version}
	if d.cfg.Region != "" {
		c := overage.Config{
			Engine: d.engine, Region: d.cfg.Region, Regions: d.cfg.RegionNames(), Shadow: d.cfg.Shadow,
		}
		if d.agent != nil {
			c.Agent = d.agent
		}
		d.monitor = overage.New(c)
		o.Cluster, o.Budgets = d, d.monitor
	}
	if d.strict != nil {
		o.Strict = d.strict
	}
	d.metrics, err = telemetry.New(d.registry, o)
	if err != nil {
		return err
	}
	if d.strict != nil {
		d.strict.observe = d.metrics.Waited
	}
	d.limits, d.recent = newLimitsSource(d), newRecentState(d.engine, d.now)
	d.engine.sampled = d.texts.note
	if err := d.limits.loadFirst(); err != nil {
		return err
	}
	return d.openAcceptor()
}

func (d *daemon) engineConfig() (EngineConfig, error) {
	nc := node.Default()
	nc.NearLimit = d.cfg.Limits.NearRatio
	nc.Clock = hlc.Config{MaxOffset: d.cfg.Clock.MaxOffset}
	ec := EngineConfig{Node: nc, Shards: d.cfg.Shards, MaxKeys: d.cfg.MaxKeys, Wall: d.wall}
	if err := d.readSecret(); err != nil {
		return ec, err
	}
	if err := d.replicate(&ec); err != nil {
		return ec, err
	}
	var seed [16]byte
	rand.Read(seed[:]) // never fails
	ec.Seed = [2]uint64{binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:])}
	if d.secret == nil {
		rand.Read(ec.Secret[:])
		return ec, nil
	}
	sum := d.derive("key hash")
	copy(ec.Secret[:], sum[:])
	return ec, nil
}

// readSecret reads the secret file, if there is one and nothing replaces it.
func (d *daemon) readSecret() error {
	if d.cfg.Cluster.SecretFile == "" || d.secret != nil {
		return nil
	}
	secret, warnings, err := config.ReadSecret(d.cfg.Cluster.SecretFile)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		d.log.Warn(w)
	}
	d.secret = secret
	return nil
}

// now reads the wall clock.
func (d *daemon) now() time.Time {
	if d.wall != nil {
		return d.wall()
	}
	return time.Now()
}

// derive returns what the secret is for one purpose: nothing that is used for
// one tells anything of another.
func (d *daemon) derive(purpose string) [sha256.Size]byte {
	return sha256.Sum256(append([]byte("rld "+purpose+"\x00"), d.secret...))
}

// serve runs everything until ctx ends or a listener fails, and stops it in
// the reverse order.
func (d *daemon) serve(ctx context.Context, e *edges, reload <-chan struct{}) error {
	ctx, kill := context.WithCancelCause(ctx)
	d.kill = kill
	if d.cfg.Region != "" {
		if err := d.joinCluster(e); err != nil {
			return errors.Join(err, e.close())
		}
	}
	// What runs beside the edges ends after them.
	behind, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	background.Go(func() { d.tick(behind) })
	background.Go(func() { d.recent.run(behind) })
	background.Go(func() { d.reload(behind, reload) })
	if d.monitor != nil {
		background.Go(func() { d.monitor.Run(behind) })
	}
	failed := e.start()

	d.state.Store(serving)
	if d.cluster == nil {
		e.grpc.SetServing(true)
	} else {
		background.Go(func() { d.serveWhenReady(behind, e) })
	}
	d.banner(e)
	if d.started != nil {
		d.started(&Handle{d, e})
	}

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		d.log.Error("a listener failed, stopping", "error", err)
	}
	d.state.Store(draining) // before it is said
	if errors.Is(context.Cause(ctx), errKilled) {
		err = d.cutOff(e)
	} else {
		err = errors.Join(err, d.stop(e))
	}
	cancel()
	background.Wait()
	if err == nil {
		d.log.Info("stopped")
	}
	return err
}

// serveWhenReady says whether the daemon serves: it may lose its name after it
// was ready.
func (d *daemon) serveWhenReady(ctx context.Context, e *edges) {
	for up := d.ready() == nil; ; up = !up {
		e.grpc.SetServing(up)
		changed := func() bool { return d.state.Load() != serving || (d.ready() == nil) != up }
		if !until(ctx, forever, changed) || d.state.Load() != serving {
			return
		}
	}
}

// reload passes on that files are to be read again.
func (d *daemon) reload(ctx context.Context, asked <-chan struct{}) {
	again := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { d.limits.watch(ctx, again) })
	defer watching.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-asked:
			if !ok {
				asked = nil
				continue
			}
		}
		d.rotateKeys()
		select {
		case again <- struct{}{}:
		case <-ctx.Done():
		}
	}
}

// stop drains the edges, hands over what was counted, and leaves.
func (d *daemon) stop(e *edges) error {
	d.log.Info("stopping", "waiting at most", d.cfg.Drain)
	if d.cluster == nil {
		return e.stop(d.cfg.Drain)
	}
	d.cluster.retire()
	err := e.stop(d.cfg.Drain)
	d.cluster.leave()
	return err
}

// cutOff ends everything at once, as if the process had been killed.
func (d *daemon) cutOff(e *edges) error {
	err := e.close()
	if d.cluster != nil {
		d.cluster.close()
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
			if d.cluster == nil { // its replicator does
				d.engine.Tick(d.engine.Now())
			}
		case <-look.C:
			degraded.look(d.engine.Now().Mono, d.engine.Stats())
		}
	}
}

// ready says why the daemon does not take calls, or nil when it does.
func (d *daemon) ready() error {
	switch d.state.Load() {
	case serving:
		if d.cluster != nil {
			return d.cluster.unready()
		}
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
	if d.cluster != nil {
		b.region, b.name, b.swim = d.cfg.Region, d.cfg.Name, d.cluster.swim.Addr()
	}
	if _, err := io.WriteString(d.out, b.text()); err != nil {
		d.log.Warn("the banner could not be printed", "error", err)
	}
	d.log.Info("serving", "grpc", e.grpcAddr(), "http", e.httpAddr(), "admin", e.adminAddr(),
		"rules", len(d.engine.Rules().Rules()), "version", d.version)
}
