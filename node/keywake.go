package node

import (
	"container/heap"
	"time"

	"github.com/georld/rld/crdt"
)

// maxKeyWakes bounds the keys that a node wakes up for. Beyond it their
// transfers wait for the next hit or message.
const maxKeyWakes = 1 << 12

// keyWake is a key whose transfers have work at a time.
type keyWake struct {
	at   int64 // monotonic milliseconds
	key  crdt.Key
	rule uint64 // rules.Rule.Shared
}

// keyWakes is a heap by time.
type keyWakes struct{ all wakeHeap }

type wakeHeap []keyWake

func (w wakeHeap) Len() int           { return len(w) }
func (w wakeHeap) Less(i, j int) bool { return w[i].at < w[j].at }
func (w wakeHeap) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *wakeHeap) Push(x any)        { *w = append(*w, x.(keyWake)) }

// Pop implements heap.Interface.
func (w *wakeHeap) Pop() any {
	n := len(*w) - 1
	x := (*w)[n]
	*w = (*w)[:n]
	return x
}

// add adds a key, if there is room.
func (w *keyWakes) add(k keyWake) {
	if len(w.all) < maxKeyWakes {
		heap.Push(&w.all, k)
	}
}

// next returns the monotonic time of the first one, ok false for none.
func (w *keyWakes) next() (at time.Duration, ok bool) {
	if len(w.all) == 0 {
		return 0, false
	}
	return time.Duration(w.all[0].at) * time.Millisecond, true
}

// wakeKeys lets the transfers of the keys work whose time has come.
func wakeKeys(n *Node, now int64) {
	for len(n.wakes.all) > 0 && n.wakes.all[0].at <= n.at.Mono.Milliseconds() {
		k := heap.Pop(&n.wakes.all).(keyWake)
		if e := n.keys.live.Find(k.key); e != nil {
			review(n, e, n.rules.set.FindShared(k.rule), now)
		}
	}
}
