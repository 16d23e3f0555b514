package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"
)

const (
	// clusterKeys is how many keys of the daemon that is measured live.
	clusterKeys = 500_000
	// settleTime is the pause before a cluster is measured, in which the
	// daemons exchange the counts that filled it.
	settleTime = 15 * time.Second
)

// measureCluster compares the calls a second that a daemon of a cluster of
// three regions of three answers, with those of the same daemon alone: the
// median of the ratios of the rounds. The other eight run in a process of
// their own, on the same processors, and decide a thousand calls a second
// between them. Each side is started anew each round, so that neither takes
// processor time of the other.
func measureCluster(ctx context.Context, b *bench) (outcome, error) {
	p, err := b.network(ctx)
	if err != nil {
		return outcome{}, err
	}
	member := func() (float64, error) { return b.inCluster(ctx, p) }
	alone := func() (float64, error) { return b.alone(ctx, p) }
	readings, err := alternate(ctx, b.rounds(3), member, alone)
	if err != nil {
		return outcome{}, err
	}
	o := compare(perSecond, median, readings, "the daemon alone; median of ratios")
	o.Ratio = median(ratios(readings[0], readings[1]))
	return o, nil
}

// alone measures a daemon without a region.
func (b *bench) alone(ctx context.Context, p *peers) (rate float64, err error) {
	s, err := b.serve(ctx, filepath.Join(b.dir, "bench.yaml"))
	if err != nil {
		return 0, err
	}
	defer func() { err = firstOf(err, s.stop()) }()
	return b.loaded(ctx, p, s)
}

// inCluster measures a daemon that is one of nine.
func (b *bench) inCluster(ctx context.Context, p *peers) (rate float64, err error) {
	file, err := b.secretFile()
	if err != nil {
		return 0, err
	}
	s, err := b.serve(ctx, filepath.Join(b.dir, "bench.yaml"), "--region", neighborRegions[0], "--name", "measured",
		"--peer-addr", "127.0.0.1:0", "--swim-addr", "127.0.0.1:0", "--cluster-secret-file", file)
	if err != nil {
		return 0, err
	}
	defer func() { err = firstOf(err, s.stop()) }()
	n, err := startRole(ctx, roleNeighbors, b.dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = firstOf(err, n.stop()) }()
	task := neighborhood{Peer: s.peers, Swim: s.swim, Secret: file, Limits: benchLimits()}
	data, err := json.Marshal(task)
	if err != nil {
		return 0, fmt.Errorf("neighborhood: %w", err)
	}
	if _, err := n.in.Write(append(data, '\n')); err != nil {
		return 0, n.failed(err)
	}
	inTime := n.killAfter(readyWait)
	_, err = n.readLine()
	inTime()
	if err != nil {
		return 0, err
	}
	return b.loaded(ctx, p, s)
}

// loaded fills a daemon with keys, lets it settle, and measures it.
func (b *bench) loaded(ctx context.Context, p *peers, s *served) (float64, error) {
	keys, settle := clusterKeys, settleTime
	if b.quick {
		keys, settle = 5_000, 100*time.Millisecond
	}
	fill := job{Kind: kindStream, Target: s.grpc, Flight: streamFlight, Frame: 64, Keys: keys}
	if _, err := p.askOf(s, fill); err != nil {
		return 0, err
	}
	if err := sleep(ctx, settle); err != nil {
		return 0, err
	}
	load := job{Kind: kindClosed, Target: s.grpc, Flight: flight, Warm: b.paces.warm, Length: 3 * b.load}
	r, err := p.askOf(s, load)
	if err != nil {
		return 0, err
	}
	return r.rate(), nil
}

// askOf has the client do a job with a server.
func (p *peers) askOf(s *served, j job) (result, error) {
	r, err := ask(p.client, j)
	if err != nil {
		return r, s.failed(err)
	}
	return r, nil
}

func firstOf(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
