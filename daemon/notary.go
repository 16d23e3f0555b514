package daemon

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/journal"
	"github.com/georld/rld/node"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/wire"
)

// acceptorLoop keeps the daemon's replica going: it holds, on disk, up to where homes of
// the region may have consumed. What comes in while the disk is written goes into
// the next write, and is answered after it. It is safe for concurrent use, and not
// held while anything is written.
type acceptorLoop struct {
	log  *slog.Logger
	view atomic.Pointer[route.Routing]
	news chan struct{} // holds a token when there is something to do

	mu sync.Mutex
	r  *quorum.Acceptor // nil before open

	disk *journal.Journal // of the loop alone, once it runs
	buf  [][]byte         // likewise

	counts acceptorCounts
	failed atomic.Pointer[string] // why nothing can be stored any more
}

// acceptorCounts is what a notary did, for metrics.
type acceptorCounts struct {
	writes, entries, failures, compactions, refused atomic.Uint64
	writing                                         atomic.Int64 // nanoseconds
	size                                            atomic.Int64 // bytes
}

// journalFile is what a replica promised, in the folder of rights.
const journalFile = "strict.rld"

func newAcceptorLoop(log *slog.Logger) *acceptorLoop {
	n := &acceptorLoop{log: log, news: make(chan struct{}, 1)}
	n.view.Store(new(route.Routing))
	return n
}

// expedite has the loop look at what there is to do.
func (n *acceptorLoop) expedite() {
	select {
	case n.news <- struct{}{}:
	default:
	}
}

// do changes the replica, and lets shards see who is home now.
func (n *acceptorLoop) do(by func(*quorum.Acceptor)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.r != nil {
		by(n.r)
		n.view.Store(n.r.Routing())
	}
}

// receive takes in what a daemon said to the replica.
func (n *acceptorLoop) receive(e *Engine, m *sticky.Message) {
	at := e.Now()
	now := e.Time(at).Millis()
	n.do(func(r *quorum.Acceptor) {
		if err := r.Receive(at.Mono, now, m); err != nil {
			n.counts.refused.Add(1)
		}
	})
	n.expedite()
}

// peers takes over who lives.
func (n *acceptorLoop) peers(at node.Instant, self crdt.Incarnation, live []gossip.Peer) {
	all := make([]route.Peer, len(live))
	for i, p := range live {
		all[i] = route.Peer{ID: p.ID, Name: p.Name, Region: p.Region, Ready: p.Ready}
	}
	n.do(func(r *quorum.Acceptor) { r.Peers(at.Mono, self, all) })
	n.expedite()
}

// fault returns why nothing can be stored any more, "" when it can.
func (n *acceptorLoop) fault() string {
	if text := n.failed.Load(); text != nil {
		return *text
	}
	return ""
}

// acceptorEvery is the longest time between two turns of a notary.
const acceptorEvery = 100 * time.Millisecond

// run keeps the replica going until ctx ends.
func (n *acceptorLoop) run(ctx context.Context, s *strict) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.news:
		case <-timer.C:
		}
		wake := n.turn(s)
		timer.Reset(min(acceptorEvery, max(leastSleep, wake-s.engine.Now().Mono)))
	}
}

// turn does what is due, and returns when the next turn is.
func (n *acceptorLoop) turn(s *strict) time.Duration {
	at := s.engine.Now()
	now := s.engine.Time(at).Millis()
	var ready quorum.Ready
	n.do(func(r *quorum.Acceptor) {
		r.Tick(at.Mono, now)
		ready = r.Ready(at.Mono)
	})
	for n.post(s, &ready); len(ready.Store) > 0; n.post(s, &ready) {
		// Not under the lock: what comes in meanwhile is not kept waiting.
		err := n.store(ready.Store)
		at = s.engine.Now()
		n.do(func(r *quorum.Acceptor) {
			if err != nil {
				r.Failed(err)
			} else {
				r.Stored()
			}
			ready = r.Ready(at.Mono)
		})
	}
	n.compact()
	return ready.Wake
}

// post sends what is to be sent, and logs what happened.
func (n *acceptorLoop) post(s *strict, ready *quorum.Ready) {
	if len(ready.Messages) > 0 {
		stamp := s.engine.Time(s.engine.Now())
		for i := range ready.Messages {
			ready.Messages[i].Stamp = stamp
		}
		s.post(ready.Messages)
	}
	n.tell(ready.Events)
}

// errNoJournal is why nothing can be stored.
var errNoJournal = errors.New("there is no journal: see the start of the log")

// store writes entries, all of them with one flush of the disk.
func (n *acceptorLoop) store(entries []quorum.Entry) error {
	if n.disk == nil {
		return errNoJournal
	}
	begin := time.Now()
	n.buf = n.buf[:0]
	for i := range entries {
		n.buf = append(n.buf, wire.EncodeEntry(nil, &entries[i]))
	}
	err := n.disk.Append(n.buf)
	if errors.Is(err, journal.ErrFull) {
		if err = n.rewrite(); err == nil { // it holds the entries, too
			err = n.disk.Append(n.buf)
		}
	}
	n.counts.writes.Add(1)
	n.counts.entries.Add(uint64(len(entries)))
	n.counts.writing.Add(int64(time.Since(begin)))
	n.counts.size.Store(n.disk.Size())
	if err != nil {
		n.counts.failures.Add(1)
		n.failed.Store(new(err.Error()))
	}
	return err
}

// compact writes the journal anew when most of it is out of date.
func (n *acceptorLoop) compact() {
	if n.disk == nil || !n.disk.ShouldCompact() {
		return
	}
	var failed *journal.FailedError
	switch err := n.rewrite(); {
	case errors.As(err, &failed):
		n.counts.failures.Add(1)
		n.do(func(r *quorum.Acceptor) { r.Failed(err) })
	case err != nil:
		n.counts.failures.Add(1)
		n.log.Warn("the journal of strict keys could not be written anew: it grows", "error", err)
	}
}

// rewrite replaces the journal by what the replica holds.
func (n *acceptorLoop) rewrite() error {
	var all [][]byte
	n.do(func(r *quorum.Acceptor) {
		r.Snapshot(func(e quorum.Entry) { all = append(all, wire.EncodeEntry(nil, &e)) })
	})
	err := n.disk.Rewrite(slices.Values(all))
	n.counts.size.Store(n.disk.Size())
	if err == nil {
		n.counts.compactions.Add(1)
	}
	return err
}
