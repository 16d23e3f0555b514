package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/georld/rld/internal/bench/secured"
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
	if j.Kind == kindBare {
		return c.bare(ctx, j)
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

// caller is one of the goroutines that call.
type caller struct {
	stub     ratelimitv3.RateLimitServiceClient
	requests []*ratelimitv3.RateLimitRequest
	next     *atomic.Int64 // counts on through requests
	took     *latencies
}

// callers returns n callers of a job over the connections, each with users of
// its own to begin with, or in turn for those of another key than the usual
// one.
func (c *client) callers(conns []*grpc.ClientConn, n int, j *job) []*caller {
	took, requests := newLatencies(), requestsFor(j.Ask)
	all := make([]*caller, n)
	for i := range all {
		next := new(atomic.Int64)
		next.Store(int64(i * len(requests) / n))
		if j.Ask.Key != "" {
			if c.turns[j.Ask.Key] == nil {
				c.turns[j.Ask.Key] = new(atomic.Int64)
			}
			next = c.turns[j.Ask.Key]
		}
		all[i] = &caller{
			stub:     ratelimitv3.NewRateLimitServiceClient(conns[i%len(conns)]),
			requests: requests, next: next, took: took,
		}
	}
	return all
}

// call makes the next call and counts how long after start it was answered.
func (c *caller) call(ctx context.Context, start time.Time) error {
	n := (c.next.Add(1) - 1) % int64(len(c.requests))
	answer, err := c.stub.ShouldRateLimit(ctx, c.requests[n])
	if err == nil {
		err = verify(answer)
	}
	if err == nil {
		c.took.add(start)
	}
	return err
}

// together runs every caller in a goroutine and returns the sum of their
// results, and the error of the first that fails.
func together(all []*caller, run func(*caller) error) (result, error) {
	var running errgroup.Group
	start := time.Now()
	for _, c := range all {
		running.Go(func() error { return run(c) })
	}
	err := running.Wait()
	r := result{Elapsed: time.Since(start)}
	all[0].took.summarize(&r)
	return r, err
}

// closed keeps a number of calls in flight.
func (c *client) closed(ctx context.Context, conns []*grpc.ClientConn, j job) (result, error) {
	all := c.callers(conns, j.Flight, &j)
	begin := time.Now().Add(j.Warm)
	all[0].took.from = begin
	end := begin.Add(j.Length)
	return together(all, func(c *caller) error {
		for {
			start := time.Now()
			if start.After(end) {
				return nil
			}
			if err := c.call(ctx, start); err != nil {
				return err
			}
		}
	})
}
