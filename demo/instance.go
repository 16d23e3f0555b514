package demo

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/georld/rld/config"
	"github.com/georld/rld/daemon"
)

// instance is one daemon of the demo, with its name and its addresses, and
// whichever incarnation of it runs. It is safe for concurrent use.
type instance struct {
	name   string
	place  int // in cluster.all
	region int // place of the region
	opts   daemon.Options
	skew   atomic.Int64 // of the wall clock, ns

	order sync.Mutex                  // one start or stop at a time
	run   atomic.Pointer[incarnation] // the latest that served, nil before
}

// incarnation is one run of a daemon.
type incarnation struct {
	handle *daemon.Handle
	cancel context.CancelFunc
	killed atomic.Bool
	ended  chan struct{}
	err    error // of Run, once ended is closed
}

// newInstance returns a daemon that is not started. wan carries its streams.
func newInstance(cfg config.Config, secret []byte, wan *WAN, o *Options) *instance {
	i := &instance{name: cfg.Name}
	i.opts = daemon.Options{
		Config: cfg, Log: o.Log.With("daemon", cfg.Name), Out: io.Discard, Version: o.Version, Secret: secret,
		Wall: func() time.Time { return time.Now().Add(time.Duration(i.skew.Load())) },
		Net: daemon.Net{
			Listen: func(addr string) (net.Listener, error) { return wan.Listen(cfg.Region, addr) },
			Dial: func(ctx context.Context, addr string) (net.Conn, error) {
				return wan.Dial(ctx, cfg.Region, addr)
			},
		},
	}
	return i
}

// startLimit bounds the time that a daemon takes to serve.
const startLimit = 10 * time.Second

// start runs a new incarnation and returns once it serves.
func (i *instance) start() error {
	i.order.Lock()
	defer i.order.Unlock()
	if r := i.run.Load(); r != nil && !r.over() {
		return fmt.Errorf("%s runs already", i.name)
	}
	ctx, cancel := context.WithCancel(context.Background())
	run := &incarnation{cancel: cancel, ended: make(chan struct{})}
	started := make(chan *daemon.Handle, 1)
	o := i.opts
	o.Started = func(h *daemon.Handle) { started <- h }
	go func() {
		defer close(run.ended)
		defer cancel()
		run.err = daemon.Run(ctx, o)
	}()
	select {
	case run.handle = <-started:
		i.run.Store(run)
		return nil
	case <-run.ended:
		return fmt.Errorf("%s: %w", i.name, run.err)
	case <-time.After(startLimit):
		cancel()
		<-run.ended
		return fmt.Errorf("%s: does not serve after %s", i.name, startLimit)
	}
}

func (r *incarnation) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// live returns the running incarnation, nil when there is none.
func (i *instance) live() *incarnation {
	r := i.run.Load()
	if r == nil || r.killed.Load() || r.over() {
		return nil
	}
	return r
}

// kill ends the daemon without a word and returns once it has ended.
func (i *instance) kill() error {
	r := i.live()
	if r == nil || r.killed.Swap(true) {
		return fmt.Errorf("%s does not run: start it with start %s", i.name, i.name)
	}
	r.handle.Kill()
	<-r.ended
	return nil
}

// stop ends the daemon in order and waits for it. It returns what went wrong.
func (i *instance) stop() error {
	i.order.Lock()
	defer i.order.Unlock()
	r := i.run.Load()
	if r == nil {
		return nil
	}
	before := r.over()
	r.cancel()
	<-r.ended
	if r.err == nil || r.killed.Load() || before {
		return nil
	}
	return fmt.Errorf("%s: %w", i.name, r.err)
}
