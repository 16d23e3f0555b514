//go:build e2e

package e2e

import (
	"sync"
	"time"
)

// watch asks every daemon how old its views are, for as long as a test runs.
type watch struct {
	cluster  *cluster
	ended    chan struct{}
	watching sync.WaitGroup

	mu      sync.Mutex // guards samples
	samples []sample   // in the order of their time, or nearly so
}

// sample is how old the views of one daemon were at most.
type sample struct {
	at        time.Time
	near, far time.Duration // of its own region's daemons, of others
}

const (
	watchEvery = 200 * time.Millisecond
	// The daemons' own intervals, in and across regions, as they are by
	// default: an age that is looked at now and then was at most that much
	// higher between two looks.
	nearInterval = 100 * time.Millisecond
	farInterval  = 250 * time.Millisecond
)

func startWatch(c *cluster) *watch {
	w := &watch{cluster: c, ended: make(chan struct{})}
	for _, d := range c.daemons {
		w.watching.Go(func() {
			t := time.NewTicker(watchEvery)
			defer t.Stop()
			for {
				select {
				case <-w.ended:
					return
				case <-t.C:
					w.look(d)
				}
			}
		})
	}
	return w
}

func (w *watch) stop() {
	close(w.ended)
	w.watching.Wait()
}

// look records the ages of one daemon's views.
func (w *watch) look(d *daemon) {
	s, run, began := d.now()
	if s != up || d.ready() != "" {
		return // it is given no calls
	}
	peers, err := d.netcheck()
	if err != nil {
		return
	}
	seen := sample{at: time.Now()}
	for _, peer := range w.cluster.except(d) {
		ps, _, peerBegan := peer.now()
		id := peer.incarnation()
		if ps != up || id == "" || w.cluster.separated(d.replica(), peer.replica()) {
			continue
		}
		age, ok := expectedAge(peers, id)
		if !ok {
			// No message of it has arrived yet. Others passed on the counts
			// from before the younger of the two began.
			age = time.Since(later(began, peerBegan))
		}
		if ps, _, b := peer.now(); ps != up || b != peerBegan {
			continue
		}
		if d.region == peer.region {
			seen.near = max(seen.near, age)
		} else {
			seen.far = max(seen.far, age)
		}
	}
	if s, l, _ := d.now(); s != up || l != run {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.samples = append(w.samples, seen)
}

// ages returns the greatest ages of views at about a time: of a daemon in the
// region, and of one in another. Counts go to the daemon that sums the key up,
// from it across, and on to the others: two steps within a region and one
// between.
func (w *watch) ages(at time.Time) (near, far time.Duration) {
	const about = 500 * time.Millisecond
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.samples {
		if at.Sub(s.at).Abs() <= about {
			near, far = max(near, s.near), max(far, s.far)
		}
	}
	near += nearInterval
	return near, 2*near + far + farInterval
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
