package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/georld/rld/config"
	"github.com/georld/rld/daemon/callers"
	"github.com/georld/rld/daemon/follow"
	"github.com/georld/rld/daemon/overage"
	"github.com/georld/rld/daemon/report"
	"github.com/georld/rld/daemon/secrets"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/swim"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/internal/connlimit"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin"
	"github.com/georld/rld/telemetry"
)

// Options are the arguments of Run.
type Options struct {
	// Config must have passed Validate.
	Config config.Config
	// LimitsFrom is the origin of the path of the limits, for errors; "" if it
	// is not set.
	LimitsFrom config.Origin
	// XDSHeaders are sent to an xDS server, beside those of the settings.
	XDSHeaders map[string]string
	// Log receives the log. Nil discards it.
	Log *slog.Logger
	// Out receives the banner: the addresses of the daemon and example calls.
	// Nil discards it.
	Out io.Writer
	// Program is the command that started the daemon, for the example calls;
	// "" is rld.
	Program string
	// Version is shown on the admin listener and in metrics.
	Version string
	// Secret replaces the content of the secret file.
	Secret []byte
	// Wall reads the wall clock. Nil uses the clock of the system.
	Wall func() time.Time
	// Net is the network to peers. The zero value uses the system's.
	Net Net
	// Started is called once, when the daemon answers calls.
	Started func(*Handle)
}

// Net is the network to peers, for tests and demonstrations.
type Net struct {
	// Listen opens the listener for streams of peers.
	Listen func(addr string) (net.Listener, error)
	// Dial connects to a peer.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Swim carries membership. Its owner closes it.
	Swim swim.Transport
}

// daemon is one running daemon.
type daemon struct {
	Options

	engine   *Engine
	secret   atomic.Pointer[secrets.Secrets]
	names    map[string]uint64            // of the cluster in files of state, by purpose
	longest  atomic.Int64                 // of the windows of limits that calls brought, in ms
	rotation *secrets.Follower            // nil without files of the secret
	agent    *rightsLoop                  // nil for a daemon without rights
	lock     io.Closer                    // of the folder of a witness, nil for others
	strict   *strict                      // likewise
	control  *controlLoop                 // nil for a daemon alone
	cluster  *cluster                     // likewise
	keys     *follow.File[config.Keyring] // of membership, nil without swim.keys_file
	monitor  *overage.Monitor             // likewise
	report   *report.Report
	limits   *limitsSource
	callers  *callers.Callers
	audit    *admin.Audit
	active   *activeLimits
	metrics  *telemetry.Metrics
	registry *prometheus.Registry
	state    atomic.Int32          // starting, serving, draining
	bounded  []*connlimit.Listener // set before anything is served
	kill     context.CancelCauseFunc
}

// The states of a daemon.
const (
	starting int32 = iota
	serving
	draining
)

// Run serves until ctx ends, then drains: it reports that it is not serving,
// accepts no more calls, and waits up to Config.Drain for the pending ones. It
// returns nil after an orderly stop, and an error if the daemon could not
// start, if a listener failed, or if calls were cut off. All goroutines and
// listeners have ended when it returns.
func Run(ctx context.Context, o Options) error {
	d := &daemon{Options: o}
	d.Program = cmp.Or(o.Program, "rld")
	d.Log = cmp.Or(d.Log, slog.New(slog.DiscardHandler))
	d.Out = cmp.Or(d.Out, io.Discard)
	defer d.closeState()
	if err := d.build(); err != nil {
		return err
	}
	if err := d.limits.await(ctx); err != nil {
		return err
	}
	e, err := d.listen()
	if err != nil {
		return err
	}
	return d.serve(ctx, e)
}

// build makes all parts except the listeners.
func (d *daemon) build() error {
	if d.Config.Region != "" {
		var err error
		if d.Config.Name, err = d.Config.DaemonName(); err != nil {
			return err
		}
	}
	warnings, err := d.Config.CheckStateFiles()
	if err != nil {
		return err
	}
	d.warn(warnings)
	ec, err := d.engineConfig()
	if err != nil {
		return err
	}
	d.keepNames()
	if d.callers, err = callers.Open(&d.Config, d.Log); err != nil {
		return err
	}
	if d.engine, err = NewEngine(ec); err != nil {
		return err
	}
	d.rotation = d.newRotation()
	d.audit = admin.NewAudit(d.Log)
	d.registry = prometheus.NewRegistry()
	o := telemetry.Options{Engine: d.engine, Connections: d.connectionStats, Callers: d.callerStats, Gateways: slices.Sorted(maps.Keys(d.Config.Gateways)), Version: d.Version}
	rc := report.Config{
		Engine: d.engine, Region: d.Config.Region, Name: d.Config.Name, Version: d.Version,
		MaxKeys: d.Config.MaxKeys, HotThreshold: d.Config.HotKey.Threshold, Settings: d.settings(),
		Ready: d.ready, LimitsFault: func() string { return d.limits.fault() }, Wall: d.now, Log: d.Log,
		NextSecret: d.nextSecret, SharedKeys: d.secret.Load().Current != nil, Witness: d.Config.Witness(), Keyring: d.keyring,
	}
	if d.Config.Region != "" {
		d.monitor = newMonitor(d)
		o.Budgets, rc.WorstRule = d.monitor.BudgetStats, d.monitor.WorstRule
		rc.Regions = firstRegions(&d.Config)
	}
	if d.agent != nil {
		rc.Rights = d.agent
	}
	if d.strict != nil {
		o.Strict, rc.Strict = d.strict.StrictStats, d.strict
	}
	d.report = report.New(rc)
	d.engine.sampled = d.report.Sampled
	if d.Config.Limits.XDS.On() {
		o.XDS = func() telemetry.XDSStats { return d.limits.xds.Stats() }
	}
	if d.Config.Region != "" {
		o.Cluster, o.Control = d.report.ClusterStats, d.report.ControlStats
	}
	if d.metrics, err = telemetry.New(d.registry, o); err != nil {
		return err
	}
	if d.strict != nil {
		d.strict.observe = d.metrics.Waited
	}
	d.active = newActiveLimits(d.engine, d.setRules, d.Log)
	if err := d.openControl(); err != nil {
		return err
	}
	if d.control != nil {
		d.report.Control, d.report.Limits = d.control, d.active
		if d.agent != nil {
			d.agent.control, d.active.held = d.control, d.agent.horizon
			d.control.written = d.agent.news
		}
		if err := d.active.follow(d.control); err != nil {
			return err
		}
	}
	d.limits = &limitsSource{cfg: &d.Config, log: d.Log, metrics: d.metrics, active: d.active, headers: d.XDSHeaders}
	if err := d.limits.loadFirst(d.LimitsFrom); err != nil {
		return err
	}
	return d.openAcceptor()
}

// callerStats describes callers, operators and the files that are followed, for
// metrics.
func (d *daemon) callerStats() telemetry.CallerStats {
	s := d.callers.Stats()
	if d.keys != nil {
		s.Stale = append(s.Stale, telemetry.StaleFile{File: "membership_keys", Stale: d.keys.Fault() != nil})
	}
	d.audit.Refused(func(reason string, n uint64) { s.Admin = append(s.Admin, telemetry.Failure{Reason: reason, Count: n}) })
	return s
}

// newMonitor returns the overage monitor of a daemon.
func newMonitor(d *daemon) *overage.Monitor {
	c := &d.Config
	mc := overage.Config{Engine: d.engine, Region: c.Region, Name: c.Name, Regions: c.RegionNames(), Shadow: c.Shadow}
	if d.agent != nil {
		mc.Agent = d.agent
	}
	mc.Cluster = func() []string {
		if d.control == nil { // which is opened later
			return nil
		}
		// A region that is not in the record decides what needs no rights.
		return slices.Compact(slices.Sorted(slices.Values(slices.Concat(d.control.regions(), mc.Regions))))
	}
	mc.Short = func(names []string, more int, text string) {
		d.Log.Warn("limits have short windows: "+text, "event", "short_windows", "limits", names, "more", more)
	}
	return overage.New(mc)
}

// setRules puts rules in force, with those of single keys.
func (d *daemon) setRules(set *rules.Set, keys keyRules) {
	others := set != d.engine.Rules()
	if others && d.agent != nil {
		d.agent.rules(set)
	}
	o := node.MatcherOptions{
		AllQuotas: d.Config.QuotaAll, ChargeDenied: d.Config.Limits.ChargeDenied, Blocked: keys.blocked, Resets: keys.resets[0],
		Overridden: d.noteWindow,
	}
	if all := d.engine.hashers(); len(all) > 1 {
		o.Next = &node.NextSecret{Hasher: all[1], Resets: keys.resets[1]}
	}
	d.engine.SetRules(set, o)
	if others && d.strict != nil {
		d.strict.acceptor.expedite() // it reports the home regions
	}
}

func (d *daemon) engineConfig() (EngineConfig, error) {
	nc := node.Default()
	nc.NearLimit, nc.KeyReserve = d.Config.Limits.NearRatio, d.Config.KeyReserve
	nc.Clock = hlc.Config{MaxOffset: d.Config.Clock.MaxOffset}
	ec := EngineConfig{Node: nc, Shards: d.Config.Shards, MaxKeys: d.Config.MaxKeys, Wall: d.Wall}
	if err := d.openSecret(); err != nil {
		return ec, err
	}
	if err := d.replicate(&ec); err != nil {
		return ec, err
	}
	var seed [16]byte
	rand.Read(seed[:]) // never fails
	ec.Seed = [2]uint64{binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:])}
	if c := &d.Config; c.Region != "" {
		rand.Read(seed[:4])
		ec.Node.Incarnation = gossip.DaemonIncarnation(c.Region, c.Name, binary.LittleEndian.Uint32(seed[:4]))
	}
	ec.Secrets = hashSecrets(*d.secret.Load())
	return ec, nil
}

// warn logs the warnings of a file.
func (d *daemon) warn(warnings []string) {
	for _, w := range warnings {
		d.Log.Warn(w)
	}
}

// now reads the wall clock.
func (d *daemon) now() time.Time {
	if d.Wall != nil {
		return d.Wall()
	}
	return time.Now()
}

// serve runs everything until ctx ends or a listener fails, and stops it in the
// reverse order.
func (d *daemon) serve(ctx context.Context, e *edges) error {
	ctx, kill := context.WithCancelCause(ctx)
	d.kill = kill
	d.takeUp()
	if d.Config.Region != "" {
		if err := d.joinCluster(e); err != nil {
			return errors.Join(err, e.close())
		}
		d.report.Cluster = clusterState{d.cluster}
	}
	// The background ends after the edges.
	behind, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	background.Go(func() { d.report.Run(behind) })
	background.Go(func() { d.limits.watch(behind) })
	if d.rotation != nil {
		background.Go(func() { follow.Every(behind, secretPoll, d.rotation.Look) })
	}
	background.Go(func() { d.callers.Run(behind, d.Config.Limits.Poll) })
	if d.keys != nil {
		background.Go(func() { follow.Every(behind, d.Config.Limits.Poll, func() { d.keys.Look(false) }) })
	}
	if d.control != nil {
		background.Go(func() { d.active.run(behind) })
	}
	if d.monitor != nil {
		background.Go(func() { d.monitor.Run(behind) })
	}
	failed := e.start()

	d.state.Store(serving)
	if d.cluster == nil {
		alone := &replicator{engine: d.engine}
		background.Go(func() { alone.run(behind) })
		e.grpc.SetServing(true)
	} else {
		background.Go(func() { d.serveWhenReady(behind, e) })
	}
	d.banner(e)
	if d.Started != nil {
		d.Started(&Handle{d, e})
	}

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		d.Log.Error("a listener failed, stopping", "error", err)
	}
	d.state.Store(draining) // before peers and clients notice
	if errors.Is(context.Cause(ctx), errKilled) {
		err = d.cutOff(e)
	} else {
		d.stopServing(e, err)
		err = errors.Join(err, d.stop(e))
	}
	cancel()
	background.Wait()
	if err == nil {
		d.Log.Info("stopped")
	}
	return err
}

// healthEvery is how often a daemon that is ready checks whether it still is.
// Each time wakes an idle process.
const healthEvery = 250 * time.Millisecond

// serveWhenReady keeps the gRPC health status equal to ready. A daemon may lose
// its name after it was ready.
func (d *daemon) serveWhenReady(ctx context.Context, e *edges) {
	defer e.grpc.SetServing(false)
	for up := d.decides(); ; up = !up {
		e.grpc.SetServing(up)
		changed := func() bool { return d.state.Load() != serving || d.decides() != up }
		every := pollEvery
		if up {
			every = healthEvery
		}
		if !poll(ctx, every, forever, changed) || d.state.Load() != serving {
			return
		}
	}
}

// stopServing reports that the daemon is not ready, and lets its callers move
// to others while it still answers. After an error of a listener it does not
// wait.
func (d *daemon) stopServing(e *edges, failed error) {
	d.Log.Info("stopping", "delay", d.Config.Shutdown.Delay, "timeout", d.Config.Drain)
	e.grpc.SetServing(false)
	if d.cluster != nil {
		d.cluster.retire()
	}
	if failed == nil {
		time.Sleep(d.Config.Shutdown.Delay)
	}
}

// stop drains the edges, sends the last counts to peers, and leaves the
// cluster.
func (d *daemon) stop(e *edges) error {
	err := e.stop(d.Config.Drain)
	if d.cluster == nil {
		return err
	}
	d.cluster.leave()
	return err
}

// cutOff ends everything at once, like the end of the process.
func (d *daemon) cutOff(e *edges) error {
	err := e.close()
	if d.cluster != nil {
		d.cluster.close()
	}
	return err
}

// decides reports whether the daemon accepts calls. A witness never does.
func (d *daemon) decides() bool { return !d.Config.Witness() && d.ready() == nil }

// ready returns why the daemon does not do its work, nil if it does. That of a
// witness is to vote.
func (d *daemon) ready() error {
	switch d.state.Load() {
	case serving:
		if d.cluster == nil {
			return nil
		}
		if err := d.cluster.unready(); err != nil {
			return err
		}
		return refusedByAll(d.cluster.host.Streams())
	case draining:
		return errors.New("draining")
	}
	return errors.New("starting")
}

// banner prints the addresses of the daemon and example calls.
func (d *daemon) banner(e *edges) {
	b := &report.Banner{
		Program: d.Program, Version: d.Version, Exposed: d.Config.Exposed(), Limits: d.Config.Limits.Source(), Rules: d.engine.Rules(),
		GRPC: e.grpcAddr(), UDS: addrOf(e.udsLis), HTTP: e.httpAddr(), Admin: e.adminAddr(),
		AdminUDS: socketPath(e.adminUDSLis), Probe: addrOf(e.probeLis), MetricsPath: d.Config.Probe.MetricsPath, Reflection: d.Config.GRPC.Reflection,
	}
	b.TLS, b.HTTPTLS, b.Tokens = d.Config.GRPC.TLS.On(), d.Config.HTTP.TLS.On(), d.callers.Authorizer() != nil
	if d.cluster != nil {
		b.Region, b.Name, b.Peer, b.Swim = d.Config.Region, d.Config.Name, addrOf(e.peerLis), d.cluster.swim.Addr()
	}
	if _, err := io.WriteString(d.Out, b.Text()); err != nil {
		d.Log.Warn("the banner could not be printed", "error", err)
	}
	d.Log.Info("serving", "grpc", b.GRPC, "http", b.HTTP, "admin", b.Admin,
		"rules", len(b.Rules.Rules()), "version", d.Version)
}
