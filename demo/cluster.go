package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/georld/rld/config"
	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
)

// cluster is the daemons of the demo.
type cluster struct {
	regions []string
	all     []*instance // region by region
	limits  *limitsFile
}

// daemonName returns how the n-th daemon of a region is called.
func daemonName(region string, n int) string { return fmt.Sprintf("%s-%d", region, n) }

// The listeners of a daemon, by their place among its addresses.
const (
	peerPort = iota
	swimPort
	grpcPort
	httpPort
	adminPort
	portCount
)

// newCluster returns daemons that are not started.
func newCluster(o *Options, wan *WAN, limits *limitsFile) (*cluster, error) {
	total := len(o.Regions) * o.Daemons
	addrs, err := freeAddrs(total * portCount)
	if err != nil {
		return nil, err
	}
	at := func(region, n, port int) string { return addrs[(region*o.Daemons+n)*portCount+port] }
	var regions []config.Region
	for r, name := range o.Regions {
		region := config.Region{Name: name}
		for n := range o.Daemons {
			region.Peers = append(region.Peers, at(r, n, peerPort))
		}
		regions = append(regions, region)
	}
	var founders []string
	for _, name := range o.Regions[:min(len(o.Regions), control.MaxFounders)] {
		founders = append(founders, daemonName(name, 0))
	}
	secret := []byte(rand.Text())
	c := &cluster{regions: o.Regions, limits: limits}
	for r, name := range o.Regions {
		for n := range o.Daemons {
			cfg := o.base(limits.path)
			cfg.Region, cfg.Name, cfg.Regions = name, daemonName(name, n), regions
			cfg.Cluster.Founders = founders
			cfg.Peer.Addr, cfg.Swim.Addr = at(r, n, peerPort), at(r, n, swimPort)
			for i := range o.Daemons {
				cfg.Swim.Seeds = append(cfg.Swim.Seeds, at(r, i, swimPort))
			}
			cfg.GRPC.Addr, cfg.HTTP.Addr, cfg.Admin.Addr = at(r, n, grpcPort), at(r, n, httpPort), at(r, n, adminPort)
			cfg.State.Dir = filepath.Join(limits.folder(), cfg.Name)
			for i := range voters(o.Daemons) {
				cfg.Strict.Replicas = append(cfg.Strict.Replicas, daemonName(name, i))
			}
			if r == 0 && n == 0 {
				given(&cfg.GRPC.Addr, o.GRPC)
				given(&cfg.HTTP.Addr, o.HTTP)
				given(&cfg.Admin.Addr, o.Admin)
			}
			if err := valid(cfg); err != nil {
				return nil, err
			}
			i := newInstance(cfg, secret, wan, o)
			i.place, i.region = len(c.all), r
			c.all = append(c.all, i)
		}
	}
	return c, nil
}

// voters returns how many strict voters a region of n daemons has.
func voters(n int) int { return min(n, 3) }

// valid validates settings whose secret is in memory and in no file.
func valid(cfg config.Config) error {
	cfg.Cluster.SecretFile = "in memory"
	return cfg.Validate()
}

// given puts an address in the place of a free one, unless it asks for one.
func given(free *string, addr string) {
	if _, port, err := net.SplitHostPort(addr); err != nil || port != "0" {
		*free = addr
	}
}

// The settings of the demo's daemons that differ from the defaults.
const (
	// demoKeys is more than the demo ever asks for.
	demoKeys = 100_000
	// demoShards is few, since many daemons share the machine.
	demoShards = 2
	// demoDrain bounds how long the demo takes to stop.
	demoDrain = 5 * time.Second
	// demoRejoin is how often daemons look for lost ones of their region.
	demoRejoin = 2 * time.Second
	// demoPoll is the interval at which daemons look for changed limits without
	// a notice.
	demoPoll = time.Minute
)

// base returns the settings that all daemons have in common.
func (o *Options) base(limits string) config.Config {
	cfg := config.Default()
	cfg.Limits.Path, cfg.Limits.Poll = limits, demoPoll
	cfg.MaxKeys, cfg.Shards, cfg.Drain = demoKeys, demoShards, demoDrain
	cfg.Swim.Rejoin = demoRejoin
	return cfg
}

// start starts all daemons, the first one before the others, so that its error
// is returned when its ports are in use.
func (c *cluster) start() error {
	if err := c.all[0].start(); err != nil {
		return err
	}
	return atOnce(c.all[1:], (*instance).start)
}

// beginEvery is the time between two requests to begin the cluster.
const beginEvery = 500 * time.Millisecond

// holds reports whether all daemons that run hold rights.
func (c *cluster) holds() bool {
	for _, r := range c.live() {
		if !r.handle.HoldsRights() {
			return false
		}
	}
	return true
}

// begin begins the cluster, at the first daemon.
func (c *cluster) begin(ctx context.Context) {
	for ctx.Err() == nil {
		if r := c.all[0].live(); r != nil && r.handle.Begin() {
			return
		}
		pause(ctx, beginEvery)
	}
}

// stop stops all daemons in order.
func (c *cluster) stop() error { return atOnce(c.all, (*instance).stop) }

// atOnce calls f for all daemons at once and returns all errors.
func atOnce(all []*instance, f func(*instance) error) error {
	errs := make([]error, len(all))
	var wait sync.WaitGroup
	for n, i := range all {
		wait.Go(func() { errs[n] = f(i) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// named returns a daemon by its name, which must be one.
func (c *cluster) named(name string) *instance {
	return c.all[slices.IndexFunc(c.all, func(i *instance) bool { return i.name == name })]
}

// live iterates over the daemons that run.
func (c *cluster) live() iter.Seq2[*instance, *incarnation] {
	return func(yield func(*instance, *incarnation) bool) {
		for _, i := range c.all {
			if r := i.live(); r != nil && !yield(i, r) {
				return
			}
		}
	}
}

// running returns the daemons that run, by incarnation.
func (c *cluster) running() map[crdt.Incarnation]*instance {
	out := make(map[crdt.Incarnation]*instance)
	for i, r := range c.live() {
		out[r.handle.Engine().Incarnation()] = i
	}
	return out
}

// members returns the members that the running daemons see, and whether each of
// them has a view of all others.
func (c *cluster) members() (out DaemonsReport, views bool) {
	running := c.running()
	out, views = DaemonsReport{Of: len(c.all), Up: len(running), SeeLeast: len(running)}, true
	for _, r := range c.live() {
		if r.handle.Ready() == nil {
			out.Ready++
		}
		seen, ghosts, viewed := 0, 0, 0
		for _, m := range r.handle.Members() {
			if running[m.ID] != nil {
				seen++
			} else {
				ghosts++
			}
		}
		for _, l := range r.handle.Links() {
			if running[l.Peer.ID] != nil && l.Age >= 0 {
				viewed++
			}
		}
		out.SeeLeast, out.SeeMost = min(out.SeeLeast, seen), max(out.SeeMost, seen)
		out.Ghosts = max(out.Ghosts, ghosts)
		views = views && viewed == len(running)-1
	}
	return out, views
}

// setLimits changes a rule in the file and returns once all running daemons
// go by it.
func (c *cluster) setLimits(rule string, to func(*Rule)) error {
	if err := c.limits.change(rule, to); err != nil {
		return err
	}
	var reloads sync.WaitGroup
	for _, r := range c.live() {
		reloads.Go(r.handle.Reload)
	}
	reloads.Wait()
	if refused := c.behind(c.limits.Rules()); len(refused) > 0 {
		return fmt.Errorf("the new limits are refused by %s", refused)
	}
	return nil
}

// behind returns the running daemons that go by other rules.
func (c *cluster) behind(want []Rule) []string {
	var out []string
	for i, r := range c.live() {
		for _, have := range r.handle.Engine().Rules().Rules() {
			n := slices.IndexFunc(want, func(w Rule) bool { return have.Limit != nil && w.Name == have.Limit.Name })
			if n < 0 {
				continue
			}
			if w := &want[n]; have.Limit.Requests != w.Limit || have.Limit.HasBudget != w.HasBudget || have.Limit.Budget != w.Budget {
				out = append(out, i.name)
				break
			}
		}
	}
	return out
}

// discard is a log that nobody reads.
func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
