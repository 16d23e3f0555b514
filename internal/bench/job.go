package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/georld/rld/internal/load"
)

// job is one task of the client's process: a JSON object per line in, and one
// result per job out.
type job struct {
	Kind   kind
	Target string // host:port
	// More are further targets, which share the calls or the checks of a
	// stream.
	More []string
	// Ask selects the keys of the calls and checks; the zero value selects the
	// usual users.
	Ask asked
	// Flight is how many calls, or checks on a stream, are in flight.
	Flight int
	// Rate is the calls a second of an open loop, or the checks a second of a
	// stream; 0 is for as many as a stream can carry.
	Rate int
	// Pass has a relay ask the next one.
	Pass bool
	// Frame is the checks in a message of a stream.
	Frame int
	// Keys makes a stream ask for that many users, each once, instead of the
	// usual ones for Length. With Users
	// it is how many of these.
	Keys int
	// Window makes a stream count the admitted hits of each window of that
	// length and accept denials as answers. With 0, a denial is an error.
	Window time.Duration
	// Length is how long calls are started that count, after those of Warm,
	// which do not. Streams have no Warm.
	Warm, Length time.Duration
}

// asked selects the key and the users of a job.
type asked struct {
	// Key is that of the descriptors, "" for benchKey.
	Key string
	// Users are their numbers, nil for the usual ones.
	Users []int
}

// key returns the key of the descriptors.
func (a *asked) key() string { return cmp.Or(a.Key, benchKey) }

// kind is a way to ask.
type kind string

// The kinds of jobs.
const (
	kindProbe  kind = "probe"  // one call, to see that the answer is right
	kindClosed kind = "closed" // Flight callers, each waits for its answer
	kindOpen   kind = "open"   // calls at planned instants, whatever happens
	kindBare   kind = "bare"   // exchanges with a relay at planned instants
	kindHTTP   kind = "http"   // Flight requests of clients of a gateway
	kindStream kind = "stream" // CheckStream with Flight checks outstanding
)

// result is what came of a job.
type result struct {
	Checks  int64         // answered
	Elapsed time.Duration // until the last answer
	Took    *hdr.Snapshot // latencies of calls; nil for streams
	Bytes   int           // of the answer to a probe
	Windows []load.Tally  // those that a stream lived through from end to end
	Problem string        // why there is nothing of the above
}

// mergeInto adds the calls of a result to a histogram of the same range.
func (r *result) mergeInto(h *hdr.Histogram) { h.Merge(hdr.Import(r.Took)) }

// rate returns the checks a second.
func (r *result) rate() float64 { return float64(r.Checks) / r.Elapsed.Seconds() }

// serveJobs is the client's process: it does one job after the other until
// its input ends.
func serveJobs(in io.Reader, out io.Writer) {
	// The heap of a load generator is small and would be collected all the
	// time, on the processors that the servers need too.
	debug.SetGCPercent(clientGCPercent)
	c := newClient()
	defer c.close()
	// The end of the input ends a job too: the parent is gone.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	jobs := make(chan job)
	var fault error // that ended the input; written before jobs is closed
	go func() {
		defer close(jobs)
		defer cancel()
		for dec := json.NewDecoder(in); ; {
			var j job
			if fault = dec.Decode(&j); fault != nil {
				return
			}
			jobs <- j
		}
	}()
	enc := json.NewEncoder(out)
	for j := range jobs {
		r, err := c.do(ctx, j)
		if err != nil {
			r.Problem = err.Error()
		}
		check(enc.Encode(r))
	}
	if fault != io.EOF {
		check(fault)
	}
}

// clientGCPercent is GOGC of the client.
const clientGCPercent = 400

// jobGrace is how much longer than its length a job may take.
const jobGrace = 20 * time.Second

// ask has the client's process do a job.
func ask(c *child, j job) (result, error) {
	defer c.killAfter(j.Warm + j.Length + jobGrace)()
	if err := json.NewEncoder(c.in).Encode(j); err != nil {
		return result{}, c.failed(err)
	}
	line, err := c.readLine()
	if err != nil {
		return result{}, err
	}
	var r result
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		return result{}, c.failed(fmt.Errorf("result %q: %w", line, err))
	}
	if r.Problem != "" {
		return r, c.failed(fmt.Errorf("%s job: %s", j.Kind, r.Problem))
	}
	return r, nil
}
