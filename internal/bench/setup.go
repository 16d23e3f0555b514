package main

import (
	"context"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/georld/rld/internal/load"
)

// setup is the processes of some lines: servers, and the client that calls
// them. Its cleanup stops the client first, so that no server has a call to
// wait for.
type setup struct {
	cleanup
	client  *child
	target  string            // of jobs that name none
	servers map[string]*child // by gRPC address
}

// add registers a started server and the address of its calls.
func (s *setup) add(addr string, c *child) {
	if s.servers == nil {
		s.servers, s.target = make(map[string]*child), addr
	}
	s.servers[addr] = c
	s.cleanup.add(c.stop)
}

// startClient starts the client.
func (s *setup) startClient(ctx context.Context, dir string) {
	s.client = must(startRole(ctx, roleClient, dir))
	s.cleanup.add(s.client.stop)
}

// ask has the client do a job. An error that concerns a server includes that
// server's standard error.
func (s *setup) ask(j job) result {
	if j.Target == "" {
		j.Target = s.target
	}
	r, err := ask(s.client, j)
	if c := s.servers[j.Target]; c != nil && err != nil {
		err = c.failed(err)
	}
	return must(r, err)
}

// rate returns a side that does a job and reads its checks a second.
func (s *setup) rate(j job) side {
	return func() float64 {
		r := s.ask(j)
		return r.rate()
	}
}

// latencies does jobs in turns and returns the latencies of each round, of each
// job.
func (s *setup) latencies(ctx context.Context, rounds int, jobs ...job) [][]*hdr.Histogram {
	all := make([][]*hdr.Histogram, rounds)
	for round := range all {
		took, sides := make([]*hdr.Histogram, len(jobs)), make([]side, len(jobs))
		for i, j := range jobs {
			took[i] = load.NewHistogram()
			sides[i] = func() float64 {
				r := s.ask(j)
				r.mergeInto(took[i])
				return 0
			}
		}
		alternate(ctx, latencyTurns, sides...)
		all[round] = took
	}
	return all
}

// warm does jobs for a while without looking at their results.
func (s *setup) warm(b *bench, jobs ...job) {
	for _, j := range jobs {
		j.Length = b.paces.warm
		s.ask(j)
	}
}
