package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/georld/rld/config"
	"github.com/georld/rld/daemon/report"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/internal/connlimit"
	"github.com/georld/rld/internal/unixsocket"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/admin"
	adminapi "github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/server/api"
	"github.com/georld/rld/server/grpchost"
	"github.com/georld/rld/server/rlqs"
	"github.com/georld/rld/server/rls"
	"github.com/georld/rld/server/web"
	"github.com/georld/rld/telemetry"
)

// edges are the open listeners of a daemon and their servers.
type edges struct {
	grpc              *grpchost.Host
	grpcLis, udsLis   net.Listener // udsLis is nil without a unix socket
	httpUDSLis        net.Listener // likewise
	web, admin, probe *http.Server
	httpLis, adminLis net.Listener
	adminUDSLis       net.Listener // of commands, nil where there is no place for it
	probeLis          net.Listener // nil without probe.addr
	peerLis           net.Listener // of the cluster, nil for a daemon alone
	peerBounds        connlimit.Bounds
	serving           sync.WaitGroup
}

// listen opens all listeners or none, so a daemon never announces that it
// serves while an address is in use.
func (d *daemon) listen() (*edges, error) {
	e := &edges{}
	add := func(to *net.Listener, open func(string) (net.Listener, error), addr, what, flag string) error {
		lis, err := open(addr)
		if err != nil {
			return fmt.Errorf("%s listener: %w", what, listenProblem(err, addr, flag))
		}
		*to = lis
		return nil
	}
	err := errors.Join(
		add(&e.grpcLis, listen, d.Config.GRPC.Addr, "gRPC", "--grpc-addr"),
		add(&e.httpLis, listen, d.Config.HTTP.Addr, "HTTP", "--http-addr"),
		add(&e.adminLis, listen, d.Config.Admin.Addr, "admin", "--admin-addr"),
	)
	if err == nil && d.Config.Region != "" {
		open := d.Net.Listen
		if open == nil {
			open = listen
		}
		err = add(&e.peerLis, open, d.Config.Peer.Addr, "peer", "--peer-addr")
	}
	socket := func(mode fs.FileMode) func(string) (net.Listener, error) {
		return func(path string) (net.Listener, error) { return unixsocket.Listen(path, mode) }
	}
	if c := d.Config.GRPC; err == nil && c.UDS != "" {
		err = add(&e.udsLis, socket(c.UDSMode), c.UDS, "gRPC unix socket", "--grpc-uds")
	}
	if c := d.Config.HTTP; err == nil && c.UDS != "" {
		err = add(&e.httpUDSLis, socket(c.UDSMode), c.UDS, "HTTP unix socket", "--http-uds")
	}
	if c := d.Config.Probe; err == nil && c.Addr != "" {
		err = add(&e.probeLis, listen, c.Addr, "probe", "--probe-addr")
	}
	if c := d.Config.Admin; err == nil && c.UDS != "" {
		err = add(&e.adminUDSLis, socket(0o600), c.UDS, "admin unix socket", "--admin-uds")
	} else if err == nil {
		e.adminUDSLis = d.listenForCommands()
	}
	if err != nil {
		e.closeListeners()
		return nil, err
	}
	if err := d.boundConnections(e); err != nil {
		e.closeListeners()
		return nil, err
	}
	d.makeServers(e)
	return e, nil
}

// listenForCommands opens the unix socket for commands in the folder of state,
// else in a new one. A daemon without any place for it serves all else.
func (d *daemon) listenForCommands() net.Listener {
	if path := d.Config.AdminSocket(); path != "" {
		lis, err := unixsocket.Listen(path, 0o600)
		if err == nil {
			return lis
		}
		d.Log.Warn("no unix socket for commands in the folder of state: it is in another one", "error", err)
	}
	lis, err := unixsocket.ListenPrivate()
	if err != nil {
		d.Log.Warn("no unix socket for commands, which need the token or the certificate of an operator now: "+
			"give a path with --admin-uds", "error", err)
		return nil
	}
	return lis
}

// The open files that are kept for everything but connections: the log, the
// limits, the state, and of a cluster the membership and dialed peers.
const (
	reservedFiles = 40
	clusterFiles  = 64 + 16
	// maxAdmin bounds the connections of the admin listener, its socket and the
	// probe listener.
	maxAdmin = 256
	// leastEach and leastPeers are the least open files of a listener, and of
	// the streams of peers in each direction.
	leastEach, leastPeers = 16, 24
)

// boundConnections bounds the connections of all listeners, so that they never
// use up the open files.
func (d *daemon) boundConnections(e *edges) error {
	c := &d.Config
	listeners := []struct {
		lis  *net.Listener
		name string
		most config.Connections
	}{
		{&e.grpcLis, "grpc", c.GRPC.Connections},
		{&e.udsLis, "grpc_uds", config.Connections{Max: c.GRPC.Max}},
		{&e.httpLis, "http", c.HTTP.Connections},
		{&e.httpUDSLis, "http_uds", config.Connections{Max: c.HTTP.Max}},
		{&e.adminLis, "admin", config.Connections{Max: maxAdmin}},
		{&e.adminUDSLis, "admin_uds", config.Connections{Max: maxAdmin}},
		{&e.probeLis, "probe", config.Connections{Max: maxAdmin}},
	}
	needs, reserve := make([]connlimit.Need, len(listeners), len(listeners)+2), reservedFiles
	for i, l := range listeners {
		if *l.lis != nil {
			needs[i] = connlimit.NeedOf(leastEach, l.most.Max)
		}
	}
	if e.peerLis != nil {
		reserve += clusterFiles
		accepted := link.ConnectionsNeeded(leastPeers)
		needs = append(needs, accepted, accepted) // as many are dialed
	}
	limit := connlimit.OpenFiles()
	files, err := connlimit.Plan(limit, reserve, needs...)
	if err != nil {
		return err
	}
	for i, l := range listeners {
		if *l.lis == nil {
			continue
		}
		o := connlimit.Options{Name: l.name, Log: d.Log, Bounds: connlimit.BoundsOf(files[i], l.most.Max)}
		if o.Established < l.most.Max {
			d.Log.Info("the limit of open files allows fewer connections than the settings", "listener", l.name,
				"setting", l.most.Max, "allowed", o.Established, "open_files", limit)
		}
		o.Source = l.most.MaxPerSource
		b := connlimit.New(*l.lis, o)
		*l.lis = b
		d.bounded = append(d.bounded, b)
	}
	if e.peerLis != nil {
		e.peerBounds = link.BoundsOf(files[len(listeners)])
	}
	return nil
}

// connectionStats describes the bounded listeners, for metrics.
func (d *daemon) connectionStats() []connlimit.Stats {
	var out []connlimit.Stats
	for _, b := range d.bounded {
		out = append(out, b.Stats())
	}
	return out
}

// network returns the network of an address. With plain tcp, 0.0.0.0 would
// include all IPv6 addresses.
func network(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return "tcp"
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
		return "tcp4"
	}
	return "tcp"
}

// listen opens a TCP listener.
func listen(addr string) (net.Listener, error) { return net.Listen(network(addr), addr) }

// listenProblem returns the fault of an address in one line.
func listenProblem(err error, addr, flag string) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is already in use, perhaps by another rld; give another address with %s", addr, flag)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s: permission denied; give another address with %s", addr, flag)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return fmt.Errorf("%s: %w (%s)", addr, err, flag)
}

// makeServers makes the servers of the listeners.
func (d *daemon) makeServers(e *edges) {
	s := d.settings()
	s.Authorizer = d.callers.Authorizer()
	var engine interface {
		api.Engine
		rls.Engine
	} = d.engine
	if d.Config.Witness() {
		engine = witness{d.engine}
	}
	rlsEdge := rls.New(engine, s, d.metrics)
	host := grpchost.DefaultOptions()
	host.Log = d.Log
	host.Panicked = d.metrics.Panicked
	host.Authorizer, host.Credentials, host.Reflection = s.Authorizer, d.callers.GRPC(), d.Config.GRPC.Reflection
	host.ConnectionAge, host.ConnectionGrace = d.Config.GRPC.MaxConnectionAge, d.Config.GRPC.MaxConnectionAgeGrace
	host.MaxCancelledCalls, host.RefusedStream = d.Config.GRPC.MaxCancelledCalls, d.metrics.RefusedStream
	e.grpc = grpchost.New(host, rlsEdge, api.New(engine, s, d.metrics), rlqs.New(engine, s, d.metrics))

	e.web = web.NewServer(web.New(web.Options{
		Engine: engine, RLS: rlsEdge.ShouldRateLimit, Recorder: d.metrics, Settings: s,
		Ready:   d.decides,
		Mapping: d.Config.HTTP.RateLimitAPI, Gateways: d.Config.Gateways, Faulty: d.metrics.FaultyRequest,
	}))
	o := admin.Options{
		Metrics: telemetry.Handler(d.registry),
		Ready:   d.ready,
		Rules:   func() string { return limits.Describe(d.engine.Rules()) },
		Version: d.Version,

		Operators: d.callers.Operators(), Certificates: d.Config.Admin.TLS.ClientCAFile != "",
		Socket: socketPath(e.adminUDSLis), Addr: netip.MustParseAddrPort(e.adminAddr()), Hosts: ownNames(&d.Config), Pprof: d.Config.Admin.Pprof, Audit: d.audit,
	}
	o.Explain, o.Status, o.Top = d.report.Explain, d.report.Status, d.report.Top
	if d.Config.Region != "" {
		o.Strict, o.Members, o.Netcheck, o.Budget = d.report.StrictPage, d.report.Members, d.report.Netcheck, d.monitor.Answer
		if d.Config.Witness() {
			o.Budget = d.noBudget
		}
	}
	if d.control != nil {
		o.Cluster, o.History, o.Checks = d.report.ClusterPage, d.report.History, d.report.Checks
		o.Backup = func(at time.Time) (adminapi.Backup, error) { return report.Backup(d.report, at) }
		o.InitCluster, o.RecoverCluster, o.ResumeRegion = d.report.InitCluster, d.report.RecoverCluster, d.report.ResumeRegion
		o.ChangeCluster = func(ctx context.Context, c adminapi.ClusterCommandName, q adminapi.ChangeRequest) (adminapi.ChangeAnswer, error) {
			return report.ChangeCluster(ctx, d.report, c, q)
		}
		o.ClusterCommand = func(id string) (adminapi.ChangeAnswer, error) { return report.ClusterCommand(d.report, id) }
		o.Limits, o.LimitsHistory = d.report.LimitsPage, d.report.LimitsHistory
		o.LimitsCommand, o.ChangeLimits = d.report.LimitsCommand, d.report.ChangeLimits
	}
	e.admin = admin.NewServer(admin.New(o))
	e.probe = admin.NewServer(admin.NewProbe(o, d.Config.Probe.MetricsPath, d.probeMetrics()))
	e.admin.TLSConfig, e.admin.ErrorLog = d.callers.Admin(), d.callers.AdminLog()
	e.probe.ErrorLog = slog.NewLogLogger(d.Log.Handler(), slog.LevelWarn)
	e.web.TLSConfig, e.web.ErrorLog = d.callers.HTTP(), d.callers.HTTPLog()
	for _, s := range []*http.Server{e.web, e.admin, e.probe} {
		s.ConnState = connlimit.FinishHTTP
	}
}

// socketPath returns the path of a unix socket, from any working directory; ""
// for none.
func socketPath(lis net.Listener) string {
	if lis == nil {
		return ""
	}
	path, err := filepath.Abs(lis.Addr().String())
	if err != nil {
		return lis.Addr().String()
	}
	return path
}

// ownNames returns the names of this machine that requests may call it by: its
// own, and that of the settings.
func ownNames(c *config.Config) []string {
	var out []string
	if name, err := os.Hostname(); err == nil {
		out = append(out, name)
	}
	if host, _, err := net.SplitHostPort(c.Admin.Addr); err == nil {
		out = append(out, host)
	}
	return out
}

// settings returns how the edges answer. makeServers adds the Authorizer.
func (d *daemon) settings() server.Settings {
	c := &d.Config
	return server.Settings{
		Shadow: c.Shadow, RLS: c.RLS,
		LegacyHeaders:    c.HTTP.Headers == config.HeadersLegacy,
		DocumentationURL: c.HTTP.DocumentationURL,
	}
}

// start serves every listener. The channel gets the failures.
func (e *edges) start() <-chan error {
	failed := make(chan error, 7)
	run := func(serve func() error) {
		e.serving.Go(func() {
			if err := serve(); err != nil && !errors.Is(err, http.ErrServerClosed) {
				failed <- err
			}
		})
	}
	// These look at TLSConfig, which Serve sets where there is none.
	web, commands := serveHTTP(e.web, e.httpLis), serveHTTP(e.admin, e.adminLis)
	run(func() error { return e.grpc.Serve(e.grpcLis) })
	if e.udsLis != nil {
		run(func() error { return e.grpc.Serve(e.udsLis) })
	}
	if e.httpUDSLis != nil {
		run(func() error { return e.web.Serve(e.httpUDSLis) })
	}
	run(web)
	run(commands)
	if e.adminUDSLis != nil {
		run(func() error { return e.admin.Serve(e.adminUDSLis) })
	}
	if e.probeLis != nil {
		run(func() error { return e.probe.Serve(e.probeLis) })
	}
	return failed
}

// serveHTTP returns a function that serves, over TLS where the server has a
// configuration of it.
func serveHTTP(s *http.Server, lis net.Listener) func() error {
	if s.TLSConfig != nil {
		return func() error { return s.ServeTLS(lis, "", "") } // with the certificates of TLSConfig
	}
	return func() error { return s.Serve(lis) }
}

// stop drains the edges that decide calls concurrently, then the admin
// listener, so that readiness and metrics stay available to the end. After wait
// it cuts off the remaining calls.
func (e *edges) stop(wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	var both sync.WaitGroup
	var grpcErr, webErr error
	both.Go(func() { grpcErr = e.grpc.Drain(ctx) })
	both.Go(func() { webErr = shutdown(ctx, e.web) })
	both.Wait()
	// Scrapes and profiles need not complete.
	adminCtx, cancelAdmin := context.WithTimeout(context.Background(), time.Second)
	defer cancelAdmin()
	for _, s := range []*http.Server{e.admin, e.probe} {
		if err := s.Shutdown(adminCtx); err != nil {
			s.Close()
		}
	}
	e.serving.Wait()
	return errors.Join(grpcErr, webErr)
}

// close cuts off all calls at once.
func (e *edges) close() error {
	e.grpc.Stop()
	err := errors.Join(e.web.Close(), e.admin.Close(), e.probe.Close())
	e.closeListeners()
	e.serving.Wait()
	return err
}

// closeListeners closes the open listeners.
func (e *edges) closeListeners() {
	for _, lis := range []net.Listener{e.grpcLis, e.udsLis, e.httpLis, e.httpUDSLis, e.adminLis, e.adminUDSLis, e.probeLis, e.peerLis} {
		if lis != nil {
			lis.Close() // may be closed already
		}
	}
}

func shutdown(ctx context.Context, s *http.Server) error {
	if err := s.Shutdown(ctx); err != nil {
		s.Close()
		return fmt.Errorf("calls were cut off while draining HTTP: %w", err)
	}
	return nil
}

func (e *edges) grpcAddr() string  { return addrOf(e.grpcLis) }
func (e *edges) httpAddr() string  { return addrOf(e.httpLis) }
func (e *edges) adminAddr() string { return addrOf(e.adminLis) }

// addrOf returns the bound address of a listener, "" for none.
func addrOf(lis net.Listener) string {
	if lis == nil {
		return ""
	}
	return lis.Addr().String()
}

// probeMetrics returns the handler of the metrics of the probe listener.
func (d *daemon) probeMetrics() http.Handler {
	if !d.Config.Probe.UpstreamMetrics {
		return telemetry.Handler(d.registry)
	}
	return telemetry.Handler(prometheus.Gatherers{d.registry, d.metrics.Upstream(d.engine)})
}
