package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// virtual makes a schedule sleep by the clock of a synctest bubble.
func virtual(s *Schedule) *Schedule {
	s.sleep = func(ctx context.Context, until time.Time) {
		select {
		case <-time.After(time.Until(until)):
		case <-ctx.Done():
		}
	}
	return s
}

// at returns the latency that a share of calls does not exceed.
func at(h *hdr.Histogram, quantile float64) time.Duration {
	return time.Duration(h.ValueAtQuantile(quantile))
}

// TestStalledTargetShowsInPercentiles: a target that answers in 1 ms, and
// stalls for a second of ten. A load that waited for it would count the stall
// once for each call in flight, and its p99 would be 1 ms. A tenth of the calls
// is due in the stall, and so is the median of these half a second late.
func TestStalledTargetShowsInPercentiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, length = 1_000, 10 * time.Second
		start := time.Now()
		target := func(context.Context) (bool, error) {
			if since := time.Since(start); since >= 4*time.Second && since < 5*time.Second {
				time.Sleep(time.Until(start.Add(5 * time.Second)))
			}
			time.Sleep(time.Millisecond)
			return true, nil
		}
		calls := make([]Call, 8)
		for i := range calls {
			calls[i] = target
		}
		r := NewRecorder(start, time.Minute)
		s := virtual(Constant(start, start.Add(length), rate, time.Minute))
		if err := Open(t.Context(), calls, s, r.Done); err != nil {
			t.Fatal(err)
		}
		c := r.All()
		if c.Due != 10_000 || c.Allowed != 10_000 || c.Late < 900 {
			t.Errorf("%+v, want 10,000 calls, of them 900 late at least", c)
		}
		for _, want := range []struct {
			quantile float64
			from, to time.Duration
		}{
			{50, time.Millisecond, 2 * time.Millisecond},
			{95, 450 * time.Millisecond, 700 * time.Millisecond},
			{99, 850 * time.Millisecond, time.Second},
			{100, 990 * time.Millisecond, 1_100 * time.Millisecond},
		} {
			if got := at(c.Took, want.quantile); got < want.from || got > want.to {
				t.Errorf("p%v is %v, want %v to %v", want.quantile, got, want.from, want.to)
			}
		}
	})
}

// TestFrozenTarget: calls that never were sent, and those without an answer,
// count with the timeout at least.
func TestFrozenTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = time.Second
		start := time.Now()
		frozen := func(ctx context.Context) (bool, error) {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			<-ctx.Done()
			return false, ctx.Err()
		}
		r := NewRecorder(start, timeout)
		end := start.Add(3 * time.Second)
		s := virtual(Constant(start, end, 100, 0))
		if err := Open(t.Context(), []Call{frozen, frozen}, s, r.Done); err != nil {
			t.Fatal(err)
		}
		r.Unsent(s, time.Now())
		c := r.All()
		if c.Due != 300 || c.Failed+c.Unsent != 300 || c.Failed < 6 || c.Failed > 8 || c.Answered() != 0 {
			t.Errorf("%+v, want 300 calls: 3 to 4 of each caller failed, the rest unsent", c)
		}
		if e := c.Errors["DeadlineExceeded"]; e == nil || e.Calls != c.Failed {
			t.Errorf("errors %v", c.Errors)
		}
		if least := time.Duration(c.Took.Min()); least < timeout-time.Millisecond || c.Took.TotalCount() != 300 {
			t.Errorf("%d latencies from %v, want 300 of the timeout at least", c.Took.TotalCount(), least)
		}
	})
}

// TestOpenEndsWithItsContext: calls that were due before the end and could not
// be sent count as unsent. Later ones do not count.
func TestOpenEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		s := virtual(Constant(start, start.Add(time.Hour), 1, time.Hour))
		r := NewRecorder(start, time.Second)
		call := func(context.Context) (bool, error) { return false, nil }
		if err := Open(ctx, []Call{call}, s, r.Done); err != nil {
			t.Fatal(err)
		}
		r.Unsent(s, time.Now())
		if c := r.All(); c.Denied != 3 || c.Due != 3 || time.Since(start) != 2500*time.Millisecond {
			t.Errorf("%+v after %v, want the 3 calls of 2.5 s", c, time.Since(start))
		}
	})
}

// TestOpenEndsWhileCallsWait: when the context ends, no call is sent any more
// by those that waited for answers, and what became due meanwhile is not
// unsent.
func TestOpenEndsWhileCallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 500 * time.Millisecond
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 1001*time.Millisecond)
		defer cancel()
		calls := make([]Call, 100)
		for i := range calls {
			calls[i] = func(context.Context) (bool, error) {
				time.Sleep(timeout)
				return true, nil
			}
		}
		s := virtual(Constant(start, start.Add(time.Hour), 100, timeout))
		r := NewRecorder(start, timeout)
		if err := Open(ctx, calls, s, r.Done); err != nil {
			t.Fatal(err)
		}
		r.Unsent(s, start.Add(time.Second))
		if c := r.All(); c.Allowed != 101 || c.Due != 101 || time.Since(start) > 1001*time.Millisecond+timeout {
			t.Errorf("%+v after %v, want the 101 calls of the first second", c, time.Since(start))
		}
	})
}

func TestDoneEndsTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault := errors.New("the server is gone")
		start := time.Now()
		call := func(context.Context) (bool, error) { return false, fault }
		stop := func(r Result) error { return r.Err }
		s := virtual(Constant(start, start.Add(time.Hour), 10, 0))
		if err := Open(t.Context(), []Call{call, call}, s, stop); err != fault {
			t.Errorf("open loop: %v", err)
		}
		if err := Closed(t.Context(), []Call{call, call}, start.Add(time.Hour), stop); err != fault {
			t.Errorf("closed loop: %v", err)
		}
	})
}

func TestConstantSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := virtual(Constant(start, start.Add(time.Second), 3, 0))
		for _, want := range []time.Duration{0, time.Second / 3, 2 * time.Second / 3} {
			due, ok := s.Wait(t.Context())
			if !ok || due.Sub(start) != want || time.Since(start) != want {
				t.Errorf("due at %v (%v), slept until %v; want %v", due.Sub(start), ok, time.Since(start), want)
			}
		}
		if due, ok := s.Wait(t.Context()); ok {
			t.Errorf("a fourth call at %v", due.Sub(start))
		}
	})
}

// TestPoissonSchedule: the gaps have the mean and the standard deviation of
// independent arrivals, and are the same for the same seed.
func TestPoissonSchedule(t *testing.T) {
	const rate, n = 1_000, 20_000
	start := time.Unix(0, 0)
	gaps := func(seed uint64) (all []float64) {
		s := Poisson(start, start.Add(n*time.Second/rate), rate, 0, seed)
		last := start
		s.Unsent(start.Add(time.Hour), func(due time.Time) {
			all = append(all, due.Sub(last).Seconds()*rate)
			last = due
		})
		return all
	}
	a := gaps(1)
	sum, squares := 0.0, 0.0
	for _, g := range a {
		sum += g
		squares += g * g
	}
	count := float64(len(a))
	mean := sum / count
	deviation := math.Sqrt(squares/count - mean*mean)
	if math.Abs(count/n-1) > 0.05 || math.Abs(mean-1) > 0.05 || math.Abs(deviation-1) > 0.05 {
		t.Errorf("%v calls of %d, gaps of %v, deviation %v; want 1 and 1", count, n, mean, deviation)
	}
	if fmt.Sprint(a) != fmt.Sprint(gaps(1)) || fmt.Sprint(a) == fmt.Sprint(gaps(2)) {
		t.Error("the seed does not choose the arrivals")
	}
}

// TestKeys: keys have the frequencies of Zipf's law, for exponents below, at
// and above 1.
func TestKeys(t *testing.T) {
	const n, draws = 100, 200_000
	for _, zipf := range []float64{0, 0.8, 1, 1.5} {
		next := NewKeys(n, zipf).Chooser(7)
		counts := make([]float64, n)
		for range draws {
			counts[next()]++
		}
		sum := 0.0
		for i := range n {
			sum += math.Pow(float64(i+1), -zipf)
		}
		for _, i := range []int{0, 1, 9} {
			want := draws * math.Pow(float64(i+1), -zipf) / sum
			if got := counts[i] / want; got < 0.9 || got > 1.1 {
				t.Errorf("zipf %v: key %d was drawn %v times, want %v", zipf, i, counts[i], want)
			}
		}
	}
}

func TestErrorsAreBounded(t *testing.T) {
	r := NewRecorder(time.Time{}, time.Second)
	for i := range 2 * maxCodes {
		_ = r.Done(Result{Due: time.Now(), Sent: time.Now(), Err: failure{fmt.Sprint(i), errors.New("x")}})
	}
	if c := r.All(); len(c.Errors) != maxCodes+1 || c.Errors[otherCodes].Calls != maxCodes || c.Failed != 2*maxCodes {
		t.Errorf("%d codes, others %+v", len(c.Errors), c.Errors[otherCodes])
	}
}
