package swim

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/valid"
)

// Config configures a member. Self, and Bind or Transport, are mandatory.
type Config struct {
	// Self describes this daemon to the others: ID, Name, Region, Addr (of its
	// streams) and Build. Ready is the initial value of SetReady. Name has 1 to
	// 128 bytes, Region up to 64, Addr as host:port up to 255, Build up to 64.
	Self gossip.Member
	// Bind is the listening address of the membership, over UDP and TCP,
	// host:port. Port 0 selects a free one. It is ignored with a Transport.
	Bind string
	// Advertise is the address for the other members, host:port. With "" it is
	// the bound address, or a private address of this machine if that is
	// 0.0.0.0.
	Advertise string
	// Keys have 16, 24 or 32 bytes each, at most 8. The first encrypts, all
	// decrypt. Nil disables encryption, for tests.
	Keys [][]byte
	// Seeds are the addresses to join, host:port. A DNS name means all of its
	// addresses and is resolved each time. The own address is allowed.
	Seeds []string
	// Interval is the time between two rounds of gossip, 10 ms to 10 s; 0 is
	// 100 ms.
	Interval time.Duration
	// Rejoin is the time between two checks that all seeds are members, 100 ms
	// to 1 h, varied by 20 %; 0 is 15 s. Without other members it begins at a
	// second and doubles.
	Rejoin time.Duration
	// Transport carries packets and streams; nil is UDP and TCP on Bind. Start
	// takes ownership of it, and shuts it down on an error.
	Transport Transport
	// Changed, if not nil, receives the whole list, this daemon included,
	// sorted by ID, after each change. Calls are sequential; of fast changes
	// only the last one is reported. The callee owns the list. Changed runs in
	// its own goroutine, possibly before Start has returned, and must not call
	// Leave or Close. There are no calls after Leave, and none is running when
	// Close has returned.
	Changed func([]gossip.Member)
	// Log receives the events; nil discards them.
	Log *slog.Logger
}

// check returns an error that names the first invalid setting.
func (c Config) check() error {
	if err := cmp.Or(checkName(c.Self.Name), meta{Member: c.Self}.check()); err != nil {
		return err
	}
	if c.Interval < 10*time.Millisecond || c.Interval > 10*time.Second {
		return fmt.Errorf("interval %v, must be 10ms to 10s", c.Interval)
	}
	if c.Rejoin < 100*time.Millisecond || c.Rejoin > time.Hour {
		return fmt.Errorf("rejoin %v, must be 100ms to 1h", c.Rejoin)
	}
	for _, seed := range c.Seeds {
		if err := valid.Address("seed", seed); err != nil {
			return err
		}
	}
	return nil
}
