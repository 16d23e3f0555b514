// Package xds keeps the limits of a daemon equal to those of an xDS server. It
// has the streams, the retries and the file of the last accepted limits;
// package limits/xds has the protocol.
package xds

import (
	"cmp"
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/georld/rld/config"
	"github.com/georld/rld/disk"
	"github.com/georld/rld/internal/loglimit"
	"github.com/georld/rld/limits/xds"
	"github.com/georld/rld/telemetry"
)

// File is the name of the file of the last accepted limits, and LockFile that
// of the file whose lock guards it.
const (
	File     = "xds.rld"
	LockFile = "xds.rld.lock"
)

const (
	// silence is how long a server may leave a new stream without an answer
	// before another one is tried: another server may be behind the address.
	silence = time.Minute
	// pace is the least time between two responses that are read, so that a
	// server that sends all the time leaves the processor to others.
	pace = 50 * time.Millisecond
	// logEvery is the least time between two equal lines of the log.
	logEvery = time.Minute
)

// Options describes a Client.
type Options struct {
	Settings config.XDS
	// Headers are sent with each stream, beside those of the settings.
	Headers map[string]string
	// Apply puts a set in force, or returns why it is refused. One goroutine
	// calls it at a time.
	Apply func(*xds.Set) error
	// Refused gets why the latest limits of the server are not in force, "" if
	// they are, whenever that may have changed. Nil drops it.
	Refused func(fault string)
	// Folder keeps the last accepted limits, nil for none.
	Folder disk.Folder
	Log    *slog.Logger
	// Dial replaces the connection to the server in tests, nil for gRPC.
	Dial Dialer
}

// Client follows the limits of an xDS server.
type Client struct {
	Options

	protocol     sync.Mutex // of subscription, held while a set is applied
	subscription *xds.Subscription
	faults       loglimit.Limiter
	first        chan struct{} // closed when a set is in force
	once         sync.Once

	mu    sync.Mutex
	stats telemetry.XDSStats
}

// New returns a client that does nothing until Run.
func New(o Options) *Client {
	var seed [32]byte
	cryptorand.Read(seed[:]) // never fails
	if o.Dial == nil {
		o.Dial = dial
	}
	s := &o.Settings
	return &Client{
		Options: o, first: make(chan struct{}),
		subscription: xds.New(xds.Config{
			NodeID: s.NodeID, Metadata: s.Metadata(), BackoffMin: s.BackoffMin, BackoffMax: s.BackoffMax,
			Apply: o.Apply, Random: rand.New(rand.NewChaCha8(seed)),
		}),
	}
}

// Restore puts the limits of the file in force, if there is a valid one, and
// reports whether it did. Call it before Run.
func (c *Client) Restore() bool {
	if c.Folder == nil {
		return false
	}
	err := c.restore()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil:
		c.Log.Error("the stored limits of the xDS server are not used", "event", "limits", "file", c.Folder.Path(File), "error", err)
		return false
	}
	c.Log.Info("the stored limits of the xDS server are in force until it sends others", "event", "limits", "file", c.Folder.Path(File))
	c.inForce()
	return true
}

func (c *Client) restore() error {
	size, err := c.Folder.Size(File)
	if err != nil {
		return err
	}
	if size > xds.MaxResponseBytes+1<<10 {
		return fmt.Errorf("is %d bytes long: want at most %d; remove it", size, xds.MaxResponseBytes)
	}
	data, err := c.Folder.ReadFile(File)
	if err != nil {
		return err
	}
	r, err := xds.Unpack(data)
	if err != nil {
		return err
	}
	c.protocol.Lock()
	defer c.protocol.Unlock()
	return c.subscription.Restore(r)
}

// Overlay makes another overlay add its fields to the limits. After an error
// the former one stays.
func (c *Client) Overlay(o *xds.Overlay) error {
	c.protocol.Lock()
	defer c.protocol.Unlock()
	was := c.subscription.Set()
	if err := c.subscription.Overlay(o); err != nil {
		return err
	}
	if is := c.subscription.Set(); is != nil && was != nil && is.Response != was.Response {
		c.store(is) // it was refused with the former overlay
	}
	c.unused()
	c.refused()
	return nil
}

// refused passes on whether the latest limits of the server are in force. The
// caller holds c.protocol.
func (c *Client) refused() {
	if c.Refused != nil {
		c.Refused(c.subscription.Fault())
	}
}

// unused logs the rules of the overlay that the limits in force do not have.
// The caller holds c.protocol.
func (c *Client) unused() {
	if s := c.subscription.Set(); s != nil && len(s.Unused) > 0 {
		c.Log.Warn("rules of the overlay have no effect", "event", "limits", "rules", len(s.Unused), "first", s.Unused[0])
	}
}

// begin returns the first request of a stream.
func (c *Client) begin() *discovery.DiscoveryRequest {
	c.protocol.Lock()
	defer c.protocol.Unlock()
	return c.subscription.Begin()
}

// end returns the pause after a stream.
func (c *Client) end() time.Duration {
	c.protocol.Lock()
	defer c.protocol.Unlock()
	return c.subscription.End()
}

// InForce returns a channel that is closed once limits of the server, or the
// stored ones, are in force.
func (c *Client) InForce() <-chan struct{} { return c.first }

func (c *Client) inForce() { c.once.Do(func() { close(c.first) }) }

// Stats returns the state.
func (c *Client) Stats() telemetry.XDSStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

func (c *Client) count(do func(*telemetry.XDSStats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do(&c.stats)
}

// Run follows the server until ctx ends.
func (c *Client) Run(ctx context.Context) {
	for ctx.Err() == nil {
		c.count(func(s *telemetry.XDSStats) { s.Attempts++ })
		err := c.stream(ctx)
		c.count(func(s *telemetry.XDSStats) { s.Connected = false })
		wait := c.end()
		if ctx.Err() != nil {
			return
		}
		if c.faults.Due(err.Error(), time.Now(), logEvery) {
			c.Log.Warn("the xDS server cannot be reached, or ended the stream: the limits stay as they are", "event", "limits",
				"server", c.Settings.Server, "retry", wait.Round(time.Millisecond), "error", err)
		}
		sleep(ctx, wait)
	}
}

// sleep waits for a time, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// stream opens a stream and follows it to its end.
func (c *Client) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, end, err := c.Dial(ctx, &c.Options)
	if err != nil {
		return err
	}
	defer end()
	if err := s.Send(c.begin()); err != nil {
		return cmp.Or(receiveError(s), err)
	}
	responses, failed := make(chan *discovery.DiscoveryResponse), make(chan error, 1)
	var receiving sync.WaitGroup
	defer func() {
		cancel()
		receiving.Wait()
	}()
	receiving.Go(func() { failed <- receive(ctx, s, responses) })
	return c.follow(ctx, s, responses, failed)
}

// receiveError returns the error of a stream on which Send failed: that of Send
// does not name the reason.
func receiveError(s Stream) error {
	_, err := s.Recv()
	return err
}

// receive hands the responses of a stream over until it ends.
func receive(ctx context.Context, s Stream, to chan<- *discovery.DiscoveryResponse) error {
	for {
		r, err := s.Recv()
		if err != nil {
			return err
		}
		select {
		case to <- r:
		case <-ctx.Done():
			return ctx.Err()
		}
		sleep(ctx, pace)
	}
}

// follow answers the responses of a stream until it ends.
func (c *Client) follow(ctx context.Context, s Stream, responses <-chan *discovery.DiscoveryResponse, failed <-chan error) error {
	timer := time.NewTimer(silence)
	defer timer.Stop()
	var pending *discovery.DiscoveryRequest // to send at the end of the timer
	answered := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			return err
		case <-timer.C:
			if !answered {
				return fmt.Errorf("the server has not answered for %v", silence)
			}
			if err := s.Send(pending); err != nil {
				return err
			}
		case r := <-responses:
			if !answered {
				answered = true
				c.count(func(s *telemetry.XDSStats) { s.Connected = true })
			}
			timer.Stop()
			reply := c.handle(r)
			if pending = reply.Request; reply.Wait > 0 {
				timer.Reset(reply.Wait)
			} else if err := s.Send(pending); err != nil {
				return err
			}
		}
	}
}

// handle handles a response.
func (c *Client) handle(r *discovery.DiscoveryResponse) xds.Reply {
	c.protocol.Lock()
	reply := c.subscription.Receive(r)
	if reply.Set != nil {
		c.unused()
	}
	if reply.Wait == 0 { // not the same as before
		c.refused()
	}
	c.protocol.Unlock()
	if reply.Fault != "" {
		c.count(func(s *telemetry.XDSStats) { s.Refused++ })
		if c.faults.Due(reply.Fault, time.Now(), logEvery) {
			c.Log.Error("the limits of the xDS server are refused, the former ones stay in force", "event", "limits",
				"server", c.Settings.Server, "version", r.GetVersionInfo(), "error", reply.Fault)
		}
		return reply
	}
	c.count(func(s *telemetry.XDSStats) { s.Accepted, s.LastAccepted = s.Accepted+1, time.Now() })
	if reply.Set != nil {
		c.Log.Info("the limits of the xDS server are in force", "event", "limits", "version", r.GetVersionInfo(), "resources", len(reply.Set.Files))
		c.store(reply.Set)
	}
	c.inForce()
	return reply
}

// store keeps a set for the next start.
func (c *Client) store(s *xds.Set) {
	if c.Folder == nil {
		return
	}
	data, err := xds.Pack(s.Response)
	if err == nil {
		err = disk.ReplaceFile(c.Folder, File, data)
	}
	if err != nil {
		c.Log.Error("the limits of the xDS server cannot be stored: without the server the next start has former ones, or none",
			"event", "limits", "file", c.Folder.Path(File), "error", err)
	}
}
