package gossip

import "github.com/georld/rld/crdt"

// buckets is how many parts the keys are split into for digests: a difference
// makes one part of a slot's cells be sent again.
const buckets = 64

// longWindow is how long a label must matter, in milliseconds, for its cells to
// be compared: an error in a shorter one dies with it.
const longWindow = 5 * 60 * 1000

func bucketOf(k crdt.Key) uint16 { return uint16(k.Lo >> 58) }

// digested reports whether a cell takes part in digests.
func (c *cell) digested() bool { return c.Kind == Daemon && c.WindowLength > longWindow }

// digest keeps the fingerprint of a slot's cells up to date.
func (s *state) digest(c *cell, was, is crdt.PN) {
	if !c.digested() {
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

// digestsOf lists the fingerprints of a slot that are not empty.
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

// differing returns the buckets of a slot, ascending, that are not as told. What
// its writer has nothing in cannot be repaired: it is over there.
func (s *state) differing(incarnation crdt.Incarnation, told []BucketDigest) []uint16 {
	var have [buckets]crdt.Digest
	if d := s.digests[incarnation]; d != nil {
		have = *d
	}
	var out []uint16
	for _, t := range told {
		if int(t.Bucket) < buckets && t.Digest != have[t.Bucket] && len(out) < buckets {
			out = append(out, t.Bucket)
		}
	}
	return out
}
