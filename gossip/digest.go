package gossip

import (
	"time"

	"github.com/georld/rld/crdt"
)

// buckets is the number of parts that keys are split into for digests. A
// difference causes one part of an incarnation's cells to be sent again.
const buckets = 64

// LongWindow is the window length in milliseconds above which cells are
// compared. An error in a shorter window ends with it.
const LongWindow = 5 * 60 * 1000

func bucketOf(k crdt.Key) uint16 { return uint16(k >> 58) }

// digested reports whether a cell is part of digests.
func (s *state) digested(c *cell) bool {
	return c.Kind == Daemon && s.meta(c).WindowLength > LongWindow
}

// digest updates the fingerprint of an incarnation's cells.
func (s *state) digest(c *cell, was, is crdt.PN) {
	if s.undigested || !s.digested(c) {
		return
	}
	d := s.digests[c.Incarnation]
	if d == nil {
		d = new([buckets]crdt.Digest)
		s.digests[c.Incarnation] = d
	}
	b := bucketOf(c.Key)
	d[b] = d[b].Replace(crdt.CellID{Key: c.Key, Window: c.Window, Incarnation: c.Incarnation}, was, is)
	if *d == ([buckets]crdt.Digest{}) {
		delete(s.digests, c.Incarnation)
	}
}

// keepDigests sets whether digests are kept. They are not while no peer
// compares them: an update costs a hit several cache misses.
func keepDigests(s *state, keep bool) {
	if keep != s.undigested {
		return
	}
	s.undigested = !keep
	clear(s.digests)
	for i := range int32(s.cells.used) {
		if c := s.cells.at(i); keep && c.used {
			s.digest(c, crdt.PN{}, c.Value)
		}
	}
}

// digestsOf returns the fingerprints of an incarnation that are not empty.
func (s *state) digestsOf(incarnation crdt.Incarnation) []BucketDigest {
	d := s.digests[incarnation]
	if d == nil {
		return nil
	}
	var out []BucketDigest
	for b, v := range d {
		if v != 0 {
			out = append(out, BucketDigest{Bucket: uint16(b), Digest: v})
		}
	}
	return out
}

// differing returns the buckets of an incarnation, ascending, that differ from
// those of its writer. A bucket that the writer has no cells in cannot be
// repaired: its windows are over there.
func (s *state) differing(incarnation crdt.Incarnation, writer []BucketDigest) []uint16 {
	var have [buckets]crdt.Digest
	if d := s.digests[incarnation]; d != nil {
		have = *d
	}
	var out []uint16
	for _, w := range writer {
		if int(w.Bucket) < buckets && w.Digest != have[w.Bucket] && len(out) < buckets {
			out = append(out, w.Bucket)
		}
	}
	return out
}

// repair gives the long-lived cells of an incarnation in some buckets a new
// version, and returns how many.
func (s *state) repair(now time.Duration, incarnation crdt.Incarnation, list []uint16) (n uint64) {
	var wanted [buckets]bool
	for _, b := range list {
		if int(b) < buckets {
			wanted[b] = true
		}
	}
	for i := range int32(s.cells.used) {
		c := s.cells.at(i)
		if c.used && c.Incarnation == incarnation && s.digested(c) && wanted[bucketOf(c.Key)] {
			s.touch(i, now)
			n++
		}
	}
	return n
}
