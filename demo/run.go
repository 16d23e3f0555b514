package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// show is one demo that runs.
type show struct {
	o       *Options
	wan     *WAN
	cluster *cluster
	ledger  *Ledger
	clients *clients
	marks   *marks
	ages    *ages

	began  time.Time
	quit   context.CancelFunc // ends play; does nothing before it
	order  sync.Mutex         // one command at a time
	failed atomic.Int64       // commands of the script

	viewLock sync.Mutex // guards view
	view     view
}

// Run runs a demo until ctx ends, its time is over or a command stops it, and
// stops all of it. It returns an error when it cannot start or stop, and when a
// command of the script fails. It leaves nothing behind but a pending read of
// Options.In.
func Run(ctx context.Context, o Options) error {
	if o.Log == nil {
		o.Log = discard()
	}
	if o.Program == "" {
		o.Program = "rld"
	}
	if err := o.Validate(); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "rld-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	s, err := newShow(&o, NewRules(o.Traffic), folder)
	if err != nil {
		return err
	}
	// The network closes last: daemons send messages while they stop.
	defer s.wan.Close()
	defer s.clients.close()
	if err := s.cluster.start(); err != nil {
		return errors.Join(err, s.cluster.stop())
	}
	s.show(func(v view) { v.banner(s.banner()) })
	beginning, stopBeginning := context.WithCancel(ctx)
	var begin sync.WaitGroup
	begin.Go(func() { s.cluster.begin(beginning) })
	if formed := s.form(ctx); formed > 0 {
		s.note(fmt.Sprintf("all daemons know each other and hold rights after %.1f s; the clients begin", formed.Seconds()))
	}
	s.play(ctx)
	stopBeginning()
	begin.Wait()
	s.wan.Heal() // so that no call waits for a stopped daemon
	err = s.cluster.stop()
	if n := s.failed.Load(); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d commands of the script failed", n))
	}
	return err
}

func newShow(o *Options, all []Rule, folder string) (*show, error) {
	s := &show{o: o, wan: NewWAN(o.Regions, o.WAN.Link, o.Seed), quit: func() {}}
	limits, err := newLimitsFile(folder, all, o.Regions, o.Daemons)
	if err != nil {
		return nil, err
	}
	if s.cluster, err = newCluster(o, s.wan, limits); err != nil {
		return nil, err
	}
	s.ledger = NewLedger(all[:ruleCount], o.Regions)
	s.marks, s.ages = newMarks(s.cluster, o.Seed), newAges(s.cluster, o.Seed)
	traffic := NewTraffic(o.Traffic, len(o.Regions), o.Seed)
	if s.clients, err = newClients(s.cluster, traffic, s.ledger, all, o.Seed); err != nil {
		return nil, err
	}
	s.view = newView(o)
	return s, nil
}

// The times of a demo.
const (
	formLimit  = 15 * time.Second // for all daemons to know each other and hold rights
	formLook   = 20 * time.Millisecond
	showEvery  = time.Second // between two reports
	tableEvery = 500 * time.Millisecond
)

// form waits until all daemons know each other and hold rights, and returns how
// long it took, 0 when they did not in time: it is to be seen then.
func (s *show) form(ctx context.Context) time.Duration {
	began := time.Now()
	for ctx.Err() == nil && time.Since(began) < formLimit {
		if d, views := s.cluster.members(); views && d.Ready == d.Up && d.SeeLeast == d.Up && s.cluster.holds() {
			return time.Since(began)
		}
		pause(ctx, formLook)
	}
	return 0
}

// play runs the clients and reports until the demo is over, then reports the
// summary.
func (s *show) play(ctx context.Context) {
	ctx, s.quit = context.WithCancel(ctx)
	defer s.quit()
	if s.o.For > 0 {
		ctx, s.quit = context.WithTimeout(ctx, s.o.For)
		defer s.quit()
	}
	var running sync.WaitGroup
	s.began = time.Now()
	running.Go(func() { s.clients.run(ctx) })
	running.Go(func() { s.marks.run(ctx) })
	running.Go(func() { s.ages.run(ctx) })
	running.Go(func() { s.script(ctx) })
	if s.o.In != nil {
		go s.input(ctx) // ends with In, which may be never
	}
	var last rate
	interval := showEvery
	if s.o.Size != nil && !s.o.JSON {
		interval = tableEvery
	}
	every(ctx, interval, func(now time.Time) {
		r := s.report(now)
		r.Traffic.PerSecond = last.of(r)
		s.show(func(v view) { v.report(r) })
	})
	running.Wait()
	s.last(last)
}

// last reports the summary of the demo.
func (s *show) last(so rate) {
	r := s.report(time.Now())
	r.Done, r.Traffic.PerSecond = true, so.perSecond
	r.Worst = make(map[string]float64)
	for i := range r.Rules {
		r.Worst[r.Rules[i].Rule] = r.Rules[i].Worst
	}
	s.show(func(v view) { v.last(r) })
}

// rate is how often the clients ask, looked at once a second.
type rate struct {
	asked, at float64
	perSecond float64
}

func (p *rate) of(r *Report) float64 {
	asked := float64(r.Traffic.Asked)
	if took := r.Seconds - p.at; took >= 0.9 {
		p.perSecond = (asked - p.asked) / took
		p.asked, p.at = asked, r.Seconds
	}
	return p.perSecond
}

// show calls f with the view, one call at a time.
func (s *show) show(f func(view)) {
	s.viewLock.Lock()
	defer s.viewLock.Unlock()
	f(s.view)
}

// note shows a command's reply, or an event.
func (s *show) note(text string) { s.show(func(v view) { v.say(text) }) }

// view displays a demo. It is not safe for concurrent use. After a failed write
// it stops writing, and the demo continues without output.
type view interface {
	// banner shows the addresses of the daemons, once.
	banner(text string)
	// report is called each second or more often.
	report(r *Report)
	// say shows a command's reply, or an event.
	say(text string)
	// last shows the summary, once, and ends the view.
	last(r *Report)
}

func newView(o *Options) view {
	switch {
	case o.JSON:
		return &jsonView{out: writer{w: o.Out}, err: writer{w: o.Err}}
	case o.Size != nil:
		return &screen{size: o.Size, out: writer{w: o.Out}}
	}
	return &lineView{out: writer{w: o.Out}}
}

// writer drops what cannot be written any more.
type writer struct {
	w      io.Writer
	failed bool
}

func (w *writer) write(text string) {
	if w.w == nil || w.failed {
		return
	}
	_, err := io.WriteString(w.w, text)
	w.failed = err != nil
}
