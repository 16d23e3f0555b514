package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/georld/rld/internal/bench/secured"
	"github.com/georld/rld/internal/load"
	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// users is how many users the client asks for, in turn.
const users = 1_000

// connections is how many connections the client has to a server, as a
// gateway has one for each of its worker threads.
const connections = 2

// client makes load. Connections stay open from job to job, so that a server
// that waits for its turn is warm. do is for one goroutine at a time.
type client struct {
	conns map[string][]*grpc.ClientConn // by target
	// turns counts the calls for each key but the usual one, so that successive
	// jobs ask for successive users.
	turns map[string]*atomic.Int64
}

func newClient() *client {
	return &client{conns: make(map[string][]*grpc.ClientConn), turns: make(map[string]*atomic.Int64)}
}

// requestsFor returns a request for each of those that are asked for.
func requestsFor(a asked) []*ratelimitv3.RateLimitRequest {
	numbers := a.Users
	if numbers == nil {
		numbers = numbered(users)
	}
	all := make([]*ratelimitv3.RateLimitRequest, len(numbers))
	for i, u := range numbers {
		all[i] = &ratelimitv3.RateLimitRequest{
			Domain: benchDomain,
			Descriptors: []*commonv3.RateLimitDescriptor{{
				Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: a.key(), Value: userName(u)}},
			}},
		}
	}
	return all
}

// numbered returns the numbers of the first n users.
func numbered(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// userName returns the name of user i; all are of one length.
func userName(i int) string { return fmt.Sprintf("user-%06d", i) }

func (c *client) close() {
	for _, conns := range c.conns {
		for _, conn := range conns {
			conn.Close()
		}
	}
}

// to returns the connections to a target.
func (c *client) to(target string) ([]*grpc.ClientConn, error) {
	if conns, ok := c.conns[target]; ok {
		return conns, nil
	}
	var conns []*grpc.ClientConn
	for range connections {
		conn, err := grpc.NewClient("passthrough:///"+secured.Addr(target), append(secured.DialOptions(target), grpc.WithNoProxy())...)
		if err != nil {
			return nil, fmt.Errorf("connecting to %s: %w", target, err)
		}
		conns = append(conns, conn)
		c.conns[target] = conns
	}
	return conns, nil
}

// do does a job.
func (c *client) do(ctx context.Context, j job) (result, error) {
	switch j.Kind {
	case kindBare:
		return c.bare(ctx, j)
	case kindHTTP:
		return c.requests(ctx, j)
	}
	conns, err := c.to(j.Target)
	if err != nil {
		return result{}, err
	}
	for _, target := range j.More {
		more, err := c.to(target)
		if err != nil {
			return result{}, err
		}
		conns = append(slices.Clip(conns), more...)
	}
	switch j.Kind {
	case kindProbe:
		return c.probe(ctx, conns[0])
	case kindClosed:
		return c.closed(ctx, conns, j)
	case kindOpen:
		return c.open(ctx, conns, j)
	case kindStream:
		return c.stream(ctx, conns, j)
	}
	return result{}, fmt.Errorf("unknown kind of job %q", j.Kind)
}

// probe makes one call and returns the size of the answer.
func (c *client) probe(ctx context.Context, conn *grpc.ClientConn) (result, error) {
	answer, err := ratelimitv3.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, requestsFor(asked{})[0])
	if err != nil {
		return result{}, err
	}
	return result{Checks: 1, Bytes: proto.Size(answer)}, verify(answer)
}

// verify returns an error unless an answer is that of a limit that nobody
// reaches.
func verify(r *ratelimitv3.RateLimitResponse) error {
	if r.OverallCode != ratelimitv3.RateLimitResponse_OK || len(r.Statuses) != 1 ||
		r.Statuses[0].CurrentLimit.GetRequestsPerUnit() != benchRequests {
		return fmt.Errorf("answered %v, want OK under a limit of %d", r, benchRequests)
	}
	return nil
}

// calls returns n calls of a job over the connections, each with users of its
// own to begin with, or in turn for those of another key than the usual one.
func (c *client) calls(conns []*grpc.ClientConn, n int, j *job) []load.Call {
	requests := requestsFor(j.Ask)
	all := make([]load.Call, n)
	for i := range all {
		next := new(atomic.Int64)
		next.Store(int64(i * len(requests) / n))
		if j.Ask.Key != "" {
			if c.turns[j.Ask.Key] == nil {
				c.turns[j.Ask.Key] = new(atomic.Int64)
			}
			next = c.turns[j.Ask.Key]
		}
		all[i] = load.RLS(conns[i%len(conns)], func() *ratelimitv3.RateLimitRequest {
			return requests[(next.Add(1)-1)%int64(len(requests))]
		}, verify)
	}
	return all
}

// counted runs a load and returns its result: the latencies of the calls that
// were due at an instant or later. A call that fails ends it.
func counted(from time.Time, run func(load.Done) error) (result, error) {
	took := load.NewLatencies(from)
	start := time.Now()
	err := run(func(r load.Result) error {
		if r.Err == nil {
			took.Add(r.Due)
		}
		return r.Err
	})
	r := result{Elapsed: time.Since(start)}
	r.Checks, r.Took = took.Snapshot()
	return r, err
}

// closed keeps a number of calls in flight.
func (c *client) closed(ctx context.Context, conns []*grpc.ClientConn, j job) (result, error) {
	begin := time.Now().Add(j.Warm)
	return counted(begin, func(done load.Done) error {
		return load.Closed(ctx, c.calls(conns, j.Flight, &j), begin.Add(j.Length), done)
	})
}

// openCallers bounds the calls in flight of an open loop.
const openCallers = 256

// open starts calls at planned instants and measures each from its instant.
func (c *client) open(ctx context.Context, conns []*grpc.ClientConn, j job) (result, error) {
	start := time.Now().Add(time.Millisecond)
	return counted(start.Add(j.Warm), func(done load.Done) error {
		return load.Open(ctx, c.calls(conns, openCallers, &j), j.schedule(start), done)
	})
}

// schedule returns the schedule of an open loop from start on. Every call that
// was due is made.
func (j *job) schedule(start time.Time) *load.Schedule {
	return load.Constant(start, start.Add(j.Warm+j.Length), float64(j.Rate), jobGrace)
}

// stream has checks in flight on a CheckStream over each connection.
func (c *client) stream(ctx context.Context, conns []*grpc.ClientConn, j job) (result, error) {
	p := load.Pipelines{
		Domain: benchDomain, Descriptors: descriptors(&j), Once: j.Keys > 0, Flight: j.Flight, Frame: j.Frame,
		Rate: j.Rate, Length: j.Length, Window: j.Window,
		Overtaken: j.Ask.Key != "", // by a check that waits for an owner
	}
	r, err := p.Run(ctx, conns)
	return result{Checks: r.Checks, Elapsed: r.Elapsed, Windows: r.Windows}, err
}

// descriptors returns the descriptors of a job.
func descriptors(j *job) [][]*rldv1.Descriptor {
	numbers := j.Ask.Users
	if numbers == nil {
		numbers = numbered(max(j.Keys, users))
	}
	if j.Keys > 0 {
		numbers = numbers[:min(j.Keys, len(numbers))]
	}
	var all [][]*rldv1.Descriptor
	for _, n := range numbers {
		all = append(all, []*rldv1.Descriptor{{
			Entries: []*rldv1.Entry{{Key: j.Ask.key(), Value: userName(n)}},
		}})
	}
	return all
}

// requests keeps a number of requests in flight at a gateway that listens at a
// unix socket, each on a connection of its own, which are opened anew in each
// job.
func (c *client) requests(ctx context.Context, j job) (result, error) {
	h := load.HTTP{Dial: func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", j.Target)
	}}
	var calls []load.Call
	for i := range j.Flight {
		next := i * users / j.Flight
		call, closing := h.Call(func() []byte {
			next++
			return []byte(strings.Replace(httpRequest, "{user}", userName(next%users), 1))
		})
		defer closing()
		calls = append(calls, call)
	}
	begin := time.Now().Add(j.Warm)
	return counted(begin, func(done load.Done) error {
		return load.Closed(ctx, calls, begin.Add(j.Length), done)
	})
}

// httpRequest is a request of a client behind a gateway.
const httpRequest = "GET /v1/orders HTTP/1.1\r\nHost: bench\r\nUser-Agent: bench\r\nX-User: {user}\r\n\r\n"
