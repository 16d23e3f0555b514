package quota

import (
	"math"

	"github.com/georld/rld/internal/sat"
)

// MaxLogCells is the maximum number of stamps in a log, and so the highest
// limit of a sliding_log. In a full log, further hits that are charged share
// the newest stamp.
const MaxLogCells = 10_000

// stamp is the hits of one millisecond.
type stamp struct {
	at int64 // Unix milliseconds
	n  uint64
}

// Log holds the stamps of one key, oldest first, in a ring that grows with the
// stamps in use. The zero value is empty.
type Log struct {
	ring  []stamp // length is a power of two, or zero
	first int
	size  int
}

// CopyFrom sets g to a copy of another log, nil for an empty one.
func (g *Log) CopyFrom(o *Log) {
	if o == nil {
		g.Release()
		return
	}
	*g = Log{ring: append([]stamp(nil), o.ring...), first: o.first, size: o.size}
}

func (g *Log) at(i int) *stamp { return &g.ring[(g.first+i)&(len(g.ring)-1)] }

// keptStamps is the greatest ring that an empty log keeps for its next key.
const keptStamps = 4

// Release empties the log and frees a large ring.
func (g *Log) Release() {
	g.first, g.size = 0, 0
	if len(g.ring) > keptStamps {
		g.ring = nil
	}
}

// expire drops the stamps up to and including the time before, and subtracts
// them from the cell's count.
func (g *Log) expire(c *Cell, before int64) {
	if g == nil {
		return
	}
	for g.size > 0 {
		s := g.at(0)
		if s.at > before {
			return
		}
		c.Count = sat.Sub(c.Count, s.n)
		g.first = (g.first + 1) & (len(g.ring) - 1)
		g.size--
	}
}

// add counts n hits at now. It returns false if the log is full and the newest
// stamp moved to now, so that its older hits count for longer.
func (g *Log) add(now int64, n uint64) bool {
	if g.size > 0 {
		newest := g.at(g.size - 1)
		full := g.size == MaxLogCells
		if newest.at >= now || full {
			moved := newest.at < now
			newest.at = max(newest.at, now)
			newest.n = sat.Add(newest.n, n)
			return !moved
		}
	}
	if g.size == len(g.ring) {
		g.grow()
	}
	g.size++
	*g.at(g.size - 1) = stamp{now, n}
	return true
}

// insert counts n hits at a time that may be before the newest stamps. A full
// log counts them under the next newer stamp.
func (g *Log) insert(at int64, n uint64) {
	i := g.size
	for i > 0 && g.at(i-1).at > at {
		i--
	}
	switch {
	case i > 0 && g.at(i-1).at == at:
		i--
	case g.size < MaxLogCells:
		g.open(i)
		*g.at(i) = stamp{at: at}
	case i == g.size:
		i--
		g.at(i).at = at
	}
	s := g.at(i)
	s.n = sat.Add(s.n, n)
}

// open makes room for a stamp before the i-th one.
func (g *Log) open(i int) {
	if g.size == len(g.ring) {
		g.grow()
	}
	g.size++
	for j := g.size - 1; j > i; j-- {
		*g.at(j) = *g.at(j - 1)
	}
}

func (g *Log) grow() {
	ring := make([]stamp, max(4, 2*len(g.ring)))
	for i := range g.size {
		ring[i] = *g.at(i)
	}
	g.ring, g.first = ring, 0
}

// countStamp adds hits of a time to the cell of a log, and returns how many of
// them fit: the total of all stamps stays inside a uint64, and hits beyond that
// cannot change an answer.
func (f Fold) countStamp(c *Cell, log *Log, now, at int64, n uint64) uint64 {
	log.expire(c, now-f.Window())
	n = min(n, math.MaxUint64-c.Count)
	c.Window = max(c.Window, at)
	c.Count += n
	return n
}

func (f Fold) chargeLog(c *Cell, log *Log, now int64, n uint64) bool {
	return n == 0 || log.add(now, f.countStamp(c, log, now, now, n))
}

func (f Fold) resetLog(c *Cell, now int64) int64 {
	if c.Count == 0 {
		return 0
	}
	return max(0, sat.AddInt(c.Window, f.Window())-now)
}

// retryLog visits the oldest stamps until enough of them have left the window.
// It costs at most one step per hit beyond the remaining ones.
func (f Fold) retryLog(c *Cell, log *Log, now int64, n uint64) int64 {
	excess := sat.Sub(sat.Add(c.Count, n), f.Capacity())
	for i := 0; log != nil && i < log.size; i++ {
		s := log.at(i)
		if s.n >= excess {
			return max(0, s.at+f.Window()-now)
		}
		excess -= s.n
	}
	return f.resetLog(c, now)
}
