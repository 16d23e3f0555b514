package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// The rule of the network benchmarks: it never denies.
const (
	benchDomain   = "bench"
	benchKey      = "user"
	benchRequests = 4_000_000_000
)

// benchLimits returns that rule as a limits file.
func benchLimits() string {
	return fmt.Sprintf(`domain: %s
descriptors:
  - key: %s
    rate_limit: {unit: hour, requests_per_unit: %d}
`, benchDomain, benchKey, benchRequests)
}

// sizeSlack is by how many bytes the answers of the two servers may differ:
// numbers of the moment are longer or shorter.
const sizeSlack = 8

// peers is the processes of the lines over the network.
type peers struct {
	rld    *served
	noop   *child
	client *child
	// noopAddr is where the no-op listens.
	noopAddr string
}

// network returns the peers, which are started for the first line that asks.
func (b *bench) network(ctx context.Context) (*peers, error) {
	if b.peers == nil && b.peersErr == nil {
		b.peers = &peers{}
		b.peersErr = b.startPeers(ctx, b.peers)
	}
	return b.peers, b.peersErr
}

// startPeers starts the processes and sees to it that both servers answer the
// same.
func (b *bench) startPeers(ctx context.Context, p *peers) error {
	limits := filepath.Join(b.dir, "bench.yaml")
	if err := os.WriteFile(limits, []byte(benchLimits()), 0o600); err != nil {
		return fmt.Errorf("limits to serve: %w", err)
	}
	var err error
	if p.rld, err = b.serve(ctx, limits); err != nil {
		return err
	}
	if p.noop, err = startRole(ctx, roleNoop, b.dir); err != nil {
		return err
	}
	if p.noopAddr, err = p.noop.readLine(); err != nil {
		return err
	}
	if p.client, err = startRole(ctx, roleClient, b.dir); err != nil {
		return err
	}
	mine, err := p.ask(job{Kind: kindProbe, Target: p.rld.grpc})
	if err != nil {
		return err
	}
	other, err := p.ask(job{Kind: kindProbe, Target: p.noopAddr})
	if err != nil {
		return err
	}
	if d := mine.Bytes - other.Bytes; d < -sizeSlack || d > sizeSlack {
		return fmt.Errorf("rld answers %d bytes and the no-op %d: not the same message",
			mine.Bytes, other.Bytes)
	}
	return nil
}

// ask has the client do a job. An error that concerns a server includes that
// server's standard error.
func (p *peers) ask(j job) (result, error) {
	r, err := ask(p.client, j)
	if err == nil {
		return r, nil
	}
	if j.Target == p.rld.grpc {
		return r, p.rld.failed(err)
	}
	return r, p.noop.failed(err)
}

// rate returns a side that does a job and reads its checks a second.
func (p *peers) rate(j job) side {
	return func() (float64, error) {
		r, err := p.ask(j)
		if err != nil {
			return 0, err
		}
		return r.rate(), nil
	}
}

// collect returns a side that does a job and adds its latencies to h. Its
// reading is unused.
func (p *peers) collect(j job, h *hdr.Histogram) side {
	return func() (float64, error) {
		r, err := p.ask(j)
		if err != nil {
			return 0, err
		}
		return 0, r.mergeInto(h)
	}
}

// warm does jobs for a while without looking at their results.
func (p *peers) warm(b *bench, jobs ...job) error {
	for _, j := range jobs {
		j.Length = b.paces.warm
		if _, err := p.ask(j); err != nil {
			return err
		}
	}
	return nil
}

// stop stops the client first, so that the servers have nothing to wait for.
func (p *peers) stop() error {
	var errs []error
	if p.client != nil {
		errs = append(errs, p.client.stop())
	}
	if p.noop != nil {
		errs = append(errs, p.noop.stop())
	}
	if p.rld != nil {
		errs = append(errs, p.rld.stop())
	}
	return errors.Join(errs...)
}
