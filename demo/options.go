package demo

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/georld/rld/config"
)

// Options is what a demo is run with.
type Options struct {
	// Regions is their names, 1 to 6, Daemons how many run in each, 1 to 9;
	// together at most 24.
	Regions []string
	Daemons int
	// WAN is the network between the regions.
	WAN Profile
	// Traffic is how often the clients ask, a second, up to 50,000.
	Traffic int
	// For is how long the clients ask before everything is stopped, 0 for
	// until somebody says so.
	For time.Duration
	// Seed draws who asks when, and how the network varies. Daemons and the
	// machine are not drawn, so two runs are alike and not the same.
	Seed uint64
	// GRPC, HTTP and Admin are the addresses of the first daemon; port 0
	// takes a free one. The others get free ones.
	GRPC, HTTP, Admin string

	// Script is run once the clients ask. See ReadScript.
	Script []Command
	// In is read for commands, a line each; nil for none. Its end does not
	// end the demo. A read that is under way when the demo ends is left to
	// the caller.
	In io.Reader
	// Out takes what is to be seen: the live table when Size is given, a JSON
	// object a second when JSON is set, and lines otherwise.
	Out io.Writer
	// Err takes the banner when JSON is set; nil discards it.
	Err io.Writer
	// JSON makes the output one Report a line, the last one Done.
	JSON bool
	// Size returns the rows of the terminal that Out is, nil when it is none.
	Size func() (rows int, ok bool)

	// Program is how calls to paste begin; "" is rld.
	Program string
	// Version is what the daemons say they are.
	Version string
	// Log takes what the daemons log; nil discards it.
	Log *slog.Logger
}

// The bounds of a demo.
const (
	maxRegions = 6
	maxDaemons = 9
	maxAll     = 24
	maxTraffic = 50_000
)

// Default returns the options of a demo that was told nothing: three regions
// of three daemons, on the addresses of a daemon alone.
func Default() Options {
	c := config.Default()
	return Options{
		Regions: []string{"us-east", "eu-west", "ap-south"}, Daemons: 3, WAN: Global, Traffic: 500, Seed: 1,
		GRPC: c.GRPC.Addr, HTTP: c.HTTP.Addr, Admin: c.Admin.Addr,
	}
}

// Validate returns what is wrong with the options, nil when nothing is. What
// is wrong with a name of a region or an address is found later, by Run.
func (o *Options) Validate() error {
	if n := len(o.Regions); n < 1 || n > maxRegions {
		return fmt.Errorf("%d regions: say 1 to %d, such as us-east,eu-west", n, maxRegions)
	}
	for i, a := range o.Regions {
		if strings.TrimSpace(a) == "" || strings.ContainsAny(a, " \t;#") {
			return fmt.Errorf("%q is no name of a region: say one such as us-east", a)
		}
		for _, b := range o.Regions[:i] {
			if strings.EqualFold(a, b) {
				return fmt.Errorf("the region %s is named twice", a)
			}
		}
	}
	if o.Daemons < 1 || o.Daemons > maxDaemons {
		return fmt.Errorf("%d daemons a region: say 1 to %d", o.Daemons, maxDaemons)
	}
	if all := o.Daemons * len(o.Regions); all > maxAll {
		return fmt.Errorf("%d daemons in all: at most %d fit into one process", all, maxAll)
	}
	if o.Traffic < 0 || o.Traffic > maxTraffic {
		return fmt.Errorf("%d asks a second: say 0 to %d", o.Traffic, maxTraffic)
	}
	if o.For < 0 {
		return errors.New("the time is negative: say 60s, or 0s for until it is stopped")
	}
	return o.WAN.Set(string(o.WAN))
}

// Names returns what the commands of a demo with these options may name.
func (o *Options) Names() Names { return names(o.Regions, o.Daemons, NewRules(o.Traffic)) }
