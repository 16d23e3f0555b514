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

// Options configures a demo.
type Options struct {
	// Regions is their names, 1 to 6, Daemons how many run in each, 1 to 9;
	// together at most 24.
	Regions []string
	Daemons int
	// WAN is the network between the regions.
	WAN Profile
	// Traffic is how often the clients ask, a second, up to 50,000.
	Traffic int
	// For is how long the clients send calls before the demo stops; 0 runs
	// until quit.
	For time.Duration
	// Seed seeds the schedule of the calls and the variation of the network.
	// The timing of daemons and machine is real, so two runs are similar and
	// not equal.
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
	// Out receives the output: the live table when Size is set, one JSON object
	// per second when JSON is set, and lines otherwise.
	Out io.Writer
	// Err takes the banner when JSON is set; nil discards it.
	Err io.Writer
	// JSON makes the output one Report a line, the last one Done.
	JSON bool
	// Size returns the rows of the terminal that Out is, nil when it is none.
	Size func() (rows int, ok bool)

	// Program is how calls to paste begin; "" is rld.
	Program string
	// Version is the version string of the daemons.
	Version string
	// Log receives the daemons' log; nil discards it.
	Log *slog.Logger
}

// The bounds of a demo.
const (
	maxRegions = 6
	maxDaemons = 9
	maxAll     = 24
	maxTraffic = 50_000
)

// Default returns the default options: three regions of three daemons, on the
// addresses of a single daemon.
func Default() Options {
	c := config.Default()
	return Options{
		Regions: []string{"us-east", "eu-west", "ap-south"}, Daemons: 3, WAN: Global, Traffic: 500, Seed: 1,
		GRPC: c.GRPC.Addr, HTTP: c.HTTP.Addr, Admin: c.Admin.Addr,
	}
}

// Validate returns an error that lists all faults of the options, or nil. Run
// checks region names and addresses.
func (o *Options) Validate() error {
	if n := len(o.Regions); n < 1 || n > maxRegions {
		return fmt.Errorf("%d regions: use 1 to %d, such as us-east,eu-west", n, maxRegions)
	}
	for i, a := range o.Regions {
		if strings.TrimSpace(a) == "" || strings.ContainsAny(a, " \t;#") {
			return fmt.Errorf("%q is no name of a region: use one such as us-east", a)
		}
		for _, b := range o.Regions[:i] {
			if strings.EqualFold(a, b) {
				return fmt.Errorf("the region %s is named twice", a)
			}
		}
	}
	if o.Daemons < 1 || o.Daemons > maxDaemons {
		return fmt.Errorf("%d daemons a region: use 1 to %d", o.Daemons, maxDaemons)
	}
	if all := o.Daemons * len(o.Regions); all > maxAll {
		return fmt.Errorf("%d daemons in all: at most %d fit into one process", all, maxAll)
	}
	if o.Traffic < 0 || o.Traffic > maxTraffic {
		return fmt.Errorf("%d asks a second: use 0 to %d", o.Traffic, maxTraffic)
	}
	if o.For < 0 {
		return errors.New("the time is negative: use 60s, or 0s for until it is stopped")
	}
	return o.WAN.Set(string(o.WAN))
}

// Names returns the names that the commands of a demo with these options
// accept.
func (o *Options) Names() Names {
	n := Names{Regions: o.Regions, Rules: ruleNames(NewRules(o.Traffic))}
	for _, r := range o.Regions {
		for i := range o.Daemons {
			n.Daemons = append(n.Daemons, daemonName(r, i))
		}
	}
	return n
}
