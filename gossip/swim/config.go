package swim

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/georld/rld/gossip"
)

// Config is what a daemon takes part with. Self and Bind or Transport are
// needed.
type Config struct {
	// Self is what others learn of this daemon: ID, Name, Region, Addr (of its
	// streams) and Build; Ready is where SetReady starts from. Name is 1 to
	// 128 bytes, Region to 64, Addr host:port to 255, Build 0 to 64.
	Self gossip.Member
	// Bind is where the membership listens, over UDP and TCP, host:port; port
	// 0 takes a free one. Not looked at if there is a Transport.
	Bind string
	// Advertise is where others reach it, host:port; "" is the bound address,
	// or a private address of this machine if that is 0.0.0.0.
	Advertise string
	// Keys are 16, 24 or 32 bytes each, at most 8. The first encrypts, all
	// decrypt. Nil leaves everything readable, and is for tests.
	Keys [][]byte
	// Seeds are those to join, host:port. A DNS name stands for all of its
	// addresses and is looked up each time. The own address does no harm.
	Seeds []string
	// Interval is the time between two rounds of gossip, 10 ms to 10 s; 0 is
	// 100 ms.
	Interval time.Duration
	// Rejoin is the time between two looks at whether all seeds are members,
	// 100 ms to 1 h, give or take 20 %; 0 is 15 s. While there is nobody else
	// it begins at a second and doubles.
	Rejoin time.Duration
	// Transport carries packets and streams; nil is UDP and TCP on Bind. Start
	// takes it over, and shuts it down if it fails.
	Transport Transport
	// Changed, if not nil, gets the whole list, this daemon included, sorted by ID,
	// each time it has changed: one call at a time, of changes that come fast
	// only the last. The list is the callee's. It is called by a goroutine of
	// its own, maybe before Start has returned, and must not call Leave or
	// Close. Leave ends it; no call is under way when Close has returned.
	Changed func([]gossip.Member)
	// Log takes what happens; nil discards it.
	Log *slog.Logger
}

// check returns an error that names the first setting at fault.
func (c Config) check() error {
	if err := checkText("name", c.Self.Name, 1, maxName); err != nil {
		return fmt.Errorf("swim: %w", err)
	}
	if err := metaOf(c.Self).check(); err != nil {
		return fmt.Errorf("swim: %w", err)
	}
	if c.Interval < 10*time.Millisecond || c.Interval > 10*time.Second {
		return fmt.Errorf("swim: interval %v, must be 10ms to 10s", c.Interval)
	}
	if c.Rejoin < 100*time.Millisecond || c.Rejoin > time.Hour {
		return fmt.Errorf("swim: rejoin %v, must be 100ms to 1h", c.Rejoin)
	}
	return checkSeeds(c.Seeds)
}
