package grid

import (
	"time"

	"github.com/georld/rld/internal/enum"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim/load"
)

// Pattern is a kind of load on one key, in multiples of its limit.
type Pattern uint8

// The patterns.
const (
	// Smooth is half as much again as the limit, most of it in one region.
	Smooth Pattern = iota
	// Attack is twenty times the limit, the same everywhere.
	Attack
	// Bursty is 1.2 times the limit on average, in bursts: each region is on a
	// sixth of the time.
	Bursty
	// SyncBurst has every region ask for the limit at once.
	SyncBurst
	// SoloBurst has one region, another each time, ask for nine tenths of the
	// limit within 3 % of a window.
	SoloBurst
	// MovingSpot is 0.8 times the limit, most of it in one region, which is
	// another one every three windows.
	MovingSpot

	patternKinds = iota
)

var patternNames = []string{"smooth1.5", "attack20", "bursty1.2", "syncburst", "solo", "moving0.8"}

// String returns the word that scenarios use.
func (p Pattern) String() string { return enum.Name(p, patternNames...) }

// Patterns lists all patterns.
func Patterns() []Pattern { return enum.All[Pattern](patternKinds) }

// The loads of smooth and attack, in multiples of the limit.
const (
	smoothLoad = 1.5
	attackLoad = 20
)

// movingWindows is for how many windows a hot spot stays, burstyCycle the least
// time from one burst to the next.
const (
	movingWindows = 3
	burstyCycle   = 2500 * time.Millisecond
)

// workload returns the load of a pattern on a key. The daemons that calls go to
// are those of the first workload of the scenario.
func (p Pattern) workload(size Size, regions int, base []load.Workload) load.Workload {
	l := load.Workload{Name: p.String(), Domain: "grid", Hits: 1, Keys: 1}
	l.Descriptors = [][]rules.Entry{{{Key: "org", Value: "acme"}}}
	if len(base) > 0 {
		l.Pinned, l.Failover = base[0].Pinned, base[0].Failover
	}
	limit := float64(size.Limit)
	rate := limit / size.Window.Seconds()
	switch p {
	case Smooth:
		l.Rate, l.Regions = smoothLoad*rate, unevenly(regions)
	case Attack:
		l.Rate = attackLoad * rate
	case Bursty:
		cycle := max(size.Window, burstyCycle)
		l.Rate = 1.2 * 6 * rate
		l.Bursts = &load.Bursts{On: cycle / 6, Off: cycle * 5 / 6}
	case SyncBurst:
		l.From = size.Window / 10
		l.Pulse = &load.Pulse{Every: size.Window, Within: size.Lag / 5, Requests: size.Limit}
	case SoloBurst:
		within := size.Window * 3 / 100
		l.Pulse = &load.Pulse{
			Every: size.Window, Within: within, Spread: size.Window - within,
			Requests: max(1, int(0.9*limit)), Solo: true,
		}
	case MovingSpot:
		l.Rate = 0.8 * rate
		l.Moving = &load.Moving{Every: movingWindows * size.Window, Share: 0.8}
	}
	return l
}

// unevenly splits a rate over regions: 0.6, 0.3 and 0.1 for three, else half
// as much for each as for the one before.
func unevenly(regions int) []float64 {
	if regions == 3 {
		return []float64{0.6, 0.3, 0.1}
	}
	out := make([]float64, regions)
	for i := range out {
		out[i] = 1 / float64(uint64(1)<<i)
	}
	return out
}
