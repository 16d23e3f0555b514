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

// room returns memory for the next n bytes. Nothing inlines it: one copy of the
// code stays in the processor's cache.
//
//go:noinline
func (t *trace) room(n int) []byte {
	at := len(t.buf)
	t.buf = slices.Grow(t.buf, n)[:at+n]
	return t.buf[at:]
}

func (t *trace) word(v uint64) { binary.LittleEndian.PutUint64(t.room(8), v) }

func (t *trace) words(all ...uint64) {
	b := t.room(8 * len(all))
	for i, v := range all {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
}

func (t *trace) flag(v bool) { t.room(1)[0] = bit(v) }

// bit returns 1 for true.
func bit(v bool) byte {
	if v {
		return 1
	}
	return 0
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
	b := t.room(24)
	binary.LittleEndian.PutUint64(b, uint64(e.at))
	binary.LittleEndian.PutUint64(b[8:], e.seq)
	binary.LittleEndian.PutUint64(b[16:], uint64(e.kind)<<32|uint64(uint32(e.arg)))
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
	b := t.room(9)
	binary.LittleEndian.PutUint64(b, uint64(d.Index)<<32|uint64(uint32(c.Decision.Refused)))
	b[8] = bit(c.Decision.Allowed)
	hits := c.Hits()
	for i := range c.Statuses {
		st := &c.Statuses[i]
		if st.Limit == nil {
			t.flag(false)
			continue
		}
		b := t.room(50)
		b[0], b[1] = bit(st.Over), bit(st.Never)
		binary.LittleEndian.PutUint64(b[2:], uint64(hits[i].Key))
		binary.LittleEndian.PutUint64(b[10:], st.Remaining)
		binary.LittleEndian.PutUint64(b[18:], uint64(st.Reset))
		binary.LittleEndian.PutUint64(b[26:], uint64(st.Retry))
		binary.LittleEndian.PutUint64(b[34:], uint64(st.Delay))
		binary.LittleEndian.PutUint64(b[42:], uint64(st.Degraded))
	}
}

// sum returns the hash so far as 16 hexadecimal digits.
func (t *trace) sum() string {
	t.flush()
	return fmt.Sprintf("%016x", t.digest.Sum64())
}
