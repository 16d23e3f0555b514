package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/georld/rld/internal/load"
)

// run measures and prints the result.
func (o *options) run(ctx context.Context, out, progress io.Writer) error {
	var targets []*target
	for _, addr := range o.targets() {
		t, err := o.open(ctx, addr)
		if err != nil {
			return err
		}
		defer t.close()
		targets = append(targets, t)
	}
	if o.compare != "" {
		return o.runRounds(ctx, targets, out, progress)
	}
	c, elapsed := o.measure(ctx, targets[0], progress, "")
	r := newRun(o.target, &c, elapsed)
	r.Interrupted = ctx.Err() != nil
	if r.Calls.Due == 0 {
		return measured(&r)
	}
	warnings := o.warnings(o.target, &r.Calls)
	if err := o.write(out, &report{Load: o.load(), Warnings: warnings, run: r}, r.text(o)); err != nil {
		return err
	}
	warn(progress, warnings)
	return measured(&r)
}

// measured returns an error for a run without an answer.
func measured(r *run) error {
	if r.Calls.Due == 0 {
		return errors.New("nothing was measured: the load ended before the first call that counts (see --warm)")
	}
	if r.Calls.Allowed+r.Calls.Denied == 0 {
		return fmt.Errorf("nothing was measured: none of %s calls was answered", load.Grouped(r.Calls.Due))
	}
	return nil
}

// measure puts load on a target until ctx ends, and returns the calls that were
// due after the warm-up, and how long that took until the last answer. Lines of
// progress begin with a prefix.
func (o *options) measure(ctx context.Context, t *target, progress io.Writer, prefix string) (load.Counts, time.Duration) {
	start := time.Now().Add(time.Millisecond)
	from := start.Add(o.warm)
	end := from.Add(o.length)
	r := load.NewRecorder(from, o.timeout)
	s := load.Constant(start, end, o.rate, o.timeout)
	if o.arrivals == arrivalsPoisson {
		s = load.Poisson(start, end, o.rate, o.timeout, o.seed)
	}
	done := show(progress, prefix, from, r)
	interrupted := make(chan time.Time, 1)
	stop := context.AfterFunc(ctx, func() { interrupted <- time.Now() })
	// Done returns no error.
	_ = load.Open(ctx, t.calls, s, r.Done)
	last := time.Now()
	if !stop() {
		// The call that was next is not one that had to wait.
		end = (<-interrupted).Add(-time.Millisecond)
	}
	r.Unsent(s, end)
	return done(), max(0, last.Sub(from))
}

// show prints a line each second, from an instant on, of the calls since the
// last one. The returned function ends it and returns all calls.
func show(w io.Writer, prefix string, from time.Time, r *load.Recorder) (done func() load.Counts) {
	if warm := time.Until(from); warm > 100*time.Millisecond {
		fmt.Fprintf(w, "%swarming up for %s\n", prefix, warm.Round(100*time.Millisecond))
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-time.After(time.Until(from)):
		case <-end:
			return
		}
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-tick.C:
				c := r.Recent()
				fmt.Fprintf(w, "%s%4d s  %s\n", prefix, n, line(&c))
			case <-end:
				return
			}
		}
	}()
	return func() load.Counts {
		close(end)
		<-ended
		return r.All()
	}
}

// line returns the calls of a second.
func line(c *load.Counts) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/s answered", load.Grouped(c.Answered()))
	if c.Due > 0 {
		fmt.Fprintf(&b, "  p50 %s  p99 %s  max %s", quantile(c, 50), quantile(c, 99), quantile(c, 100))
	}
	for _, part := range []struct {
		n    int64
		name string
	}{{c.Denied, "denied"}, {c.Failed, "failed"}, {c.Unsent, "unsent"}, {c.Late, "sent late"}} {
		if part.n > 0 {
			fmt.Fprintf(&b, "  %s %s", load.Grouped(part.n), part.name)
		}
	}
	return b.String()
}

func quantile(c *load.Counts, q float64) string {
	return shown(time.Duration(c.Took.ValueAtQuantile(q)).Seconds())
}
