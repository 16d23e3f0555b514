package sim

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
)

// trace hashes everything that happens in a run, in order. Two runs that
// differ in anything have different hashes.
type trace struct {
	digest *xxhash.Digest
	buf    []byte
}

// traceBuffer is how much is gathered before it is hashed.
const traceBuffer = 4 << 10

func newTrace() trace { return trace{digest: xxhash.New(), buf: make([]byte, 0, 2*traceBuffer)} }

func (t *trace) word(v uint64) { t.buf = binary.LittleEndian.AppendUint64(t.buf, v) }

// words appends words at once. Nothing inlines it: one copy of the code stays
// in the processor's cache.
//
//go:noinline
func (t *trace) words(all ...uint64) {
	n := len(t.buf)
	t.buf = slices.Grow(t.buf, 8*len(all))[:n+8*len(all)]
	for _, v := range all {
		binary.LittleEndian.PutUint64(t.buf[n:], v)
		n += 8
	}
}

func (t *trace) flag(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	t.buf = append(t.buf, b)
}

func (t *trace) flush() {
	_, _ = t.digest.Write(t.buf) // never fails
	t.buf = t.buf[:0]
}

// sumOf returns the hash of a frame.
func sumOf(frame []byte) uint64 { return xxhash.Sum64(frame) }

// event hashes an event of the heap, and what happened in the events before
// when that is much.
func (t *trace) event(e event) {
	t.words(uint64(e.at), e.seq, uint64(e.kind)<<32|uint64(uint32(e.arg)))
	if len(t.buf) >= traceBuffer {
		t.flush()
	}
}

// bytes hashes a frame that arrived.
func (t *trace) bytes(b []byte) {
	t.words(uint64(len(b)), sumOf(b))
}

// happened hashes an event of a replica.
func (t *trace) happened(d *Daemon, e gossip.Event) {
	t.words(uint64(d.Index)<<32|uint64(e.Kind)<<8|uint64(e.Reason), uint64(e.At), uint64(e.Peer), e.Amount)
}

// decision hashes the answer of a daemon.
func (t *trace) decision(d *Daemon, c *node.Call) {
	t.word(uint64(d.Index)<<32 | uint64(uint32(c.Decision.Refused)))
	t.flag(c.Decision.Allowed)
	hits := c.Hits()
	for i := range c.Statuses {
		st := &c.Statuses[i]
		if st.Limit == nil {
			t.flag(false)
			continue
		}
		t.flag(st.Over)
		t.flag(st.Never)
		t.words(hits[i].Key.Hi, st.Remaining, uint64(st.Reset), uint64(st.Retry), uint64(st.Delay), uint64(st.Degraded))
	}
}

// sum returns the hash so far as 16 hexadecimal digits.
func (t *trace) sum() string {
	t.flush()
	return fmt.Sprintf("%016x", t.digest.Sum64())
}
