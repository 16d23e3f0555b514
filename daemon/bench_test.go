package daemon

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"unsafe"

	"github.com/dchest/siphash"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

func benchEngine(tb testing.TB, maxKeys int) *Engine {
	tb.Helper()
	set, err := rules.NewSet([]rules.DomainNode{{Name: "bench", Children: []rules.Node{{
		Key: "user", Limit: &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: 1 << 30},
	}}}})
	if err != nil {
		tb.Fatal(err)
	}
	e, err := NewEngine(EngineConfig{Node: node.Default(), MaxKeys: maxKeys})
	if err != nil {
		tb.Fatal(err)
	}
	e.SetRules(set, node.FrontOptions{})
	return e
}

// asker asks for one of n users at a time from memory of its own.
type asker struct {
	call node.Call
	text [32]byte
	at   node.Instant
	rng  *rand.Rand
}

func newAsker(e *Engine, seed uint64) *asker {
	a := &asker{at: e.Now(), rng: rand.New(rand.NewPCG(seed, 1))}
	a.call.Domain = "bench"
	a.call.Descriptors = []rules.Descriptor{{Hits: 1, Entries: make([]rules.Entry, 1)}}
	return a
}

// user returns a name that is good until the next call: names that lie in
// memory would add cache misses of the benchmark's own.
func (a *asker) user(i int) string {
	b := strconv.AppendInt(append(a.text[:0], "user-"...), int64(i), 10)
	return unsafe.String(&b[0], len(b))
}

func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{1_000, 1_000_000} {
		e := benchEngine(b, 2_000_000)
		ask := func(a *asker, i int) {
			a.call.Descriptors[0].Entries[0] = rules.Entry{Key: "user", Value: a.user(i)}
			a.at.Mono += 100
			a.at.Wall += 100
			if err := e.CheckAt(a.at, &a.call); err != nil {
				b.Fatal(err)
			}
		}
		a := newAsker(e, 1)
		for i := range n {
			ask(a, i)
		}
		runtime.GC()
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ask(a, a.rng.IntN(n))
			}
		})
		b.Run(fmt.Sprintf("keys=%d/parallel", n), func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				a := newAsker(e, rand.Uint64())
				for pb.Next() {
					ask(a, a.rng.IntN(n))
				}
			})
		})
		m := make(map[crdt.Key]int32, n)
		for i := range n {
			h, l := siphash.Hash128(1, 2, []byte(a.user(i)))
			m[crdt.Key{Hi: h, Lo: l}] = int32(i)
		}
		b.Run(fmt.Sprintf("keys=%d/bare", n), func(b *testing.B) {
			b.ReportAllocs()
			sum := int32(0)
			buf := make([]byte, 0, 64)
			for b.Loop() {
				buf = append(buf[:0], a.user(a.rng.IntN(n))...)
				h, l := siphash.Hash128(1, 2, buf)
				sum += m[crdt.Key{Hi: h, Lo: l}]
			}
			_ = sum
		})
	}
}
