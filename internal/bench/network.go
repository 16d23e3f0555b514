package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/georld/rld/internal/bench/secured"
	"github.com/georld/rld/internal/load"
)

// Load over the network.
const (
	flight       = 64    // calls in flight
	openRate     = 2_000 // calls a second
	streamFlight = 1_024 // checks in flight on all streams together
)

// A round is cut into turns: of rates into many, of latencies into longer
// ones, which begin with calls that do not count, since a server that waited
// for its turn is cold.
const (
	rateTurns    = 20
	latencyTurns = 10
)

// measureUnary compares the calls a second at 64 in flight with those of the
// no-op: the median of the ratios of the rounds.
func measureUnary(ctx context.Context, b *bench) outcome {
	p, mine, other := b.beside(ctx, job{Kind: kindClosed, Flight: flight, Length: b.load / rateTurns})
	return compareRatios(interleave(ctx, b.rounds(7), rateTurns, p.rate(mine), p.rate(other)), "no-op gRPC server")
}

// measureTLS compares the calls a second over TLS, on connections that stay
// open, with those in plain text.
func measureTLS(ctx context.Context, b *bench) outcome {
	cert, key, err := secured.Certificate()
	check(err)
	return b.besidePlain(ctx, secured.OverTLS,
		"--grpc-tls-cert-file", b.file("cert.pem", cert), "--grpc-tls-key-file", b.file("key.pem", key))
}

// measureToken compares the calls a second with a token with those without.
func measureToken(ctx context.Context, b *bench) outcome {
	return b.besidePlain(ctx, secured.WithToken, "--auth-tokens-file", b.file("tokens.yaml", secured.Tokens(benchDomain)))
}

// besidePlain compares the calls a second at 64 in flight of another rld, which
// is called with a prefix, with those of the rld of all lines.
func (b *bench) besidePlain(ctx context.Context, prefix string, settings ...string) outcome {
	p := b.network()
	other := b.serve(ctx, b.file("bench.yaml", benchLimits()), settings...)
	defer finish(other.stop)
	plain := job{Kind: kindClosed, Target: p.rld.grpc, Flight: flight, Length: b.load / rateTurns}
	guarded := plain
	guarded.Target = prefix + other.grpc
	p.warm(b, guarded, plain)
	return compareRatios(interleave(ctx, b.rounds(7), rateTurns, p.rate(guarded), p.rate(plain)), "plain rld")
}

// measureOneInFlight measures a call while nothing else happens.
func measureOneInFlight(ctx context.Context, b *bench) outcome {
	readings := b.p99s(ctx, b.rounds(5), job{Kind: kindClosed, Flight: 1})
	return compare(nanoseconds, least, readings, "no-op gRPC server")
}

// measureOpenLoop measures calls at planned instants. Medians are compared:
// what disturbs the machine now and then makes single rounds many times as
// slow.
func measureOpenLoop(ctx context.Context, b *bench) outcome {
	readings := b.p99s(ctx, b.rounds(11), job{Kind: kindOpen, Rate: openRate})
	return compare(nanoseconds, load.Median, readings, "no-op gRPC server")
}

// beside returns a job for rld and for the no-op, which are up and warm.
func (b *bench) beside(ctx context.Context, j job) (p *peers, mine, other job) {
	p = b.network()
	mine, other = j, j
	mine.Target, other.Target = p.rld.grpc, p.noopAddr
	p.warm(b, mine, other)
	return p, mine, other
}

// p99s does a job on rld and on the no-op in turns, and returns the 99th
// percentile of the calls of each round.
func (b *bench) p99s(ctx context.Context, rounds int, j job) [][]float64 {
	j.Length = b.load / latencyTurns
	j.Warm = j.Length / 10
	p, mine, other := b.beside(ctx, j)
	return quantiles(p.latencies(ctx, rounds, mine, other), 99)
}

// measureStream compares the checks a second on streams with the calls a
// second of RLS, by the same client of the same rld.
func measureStream(frame int) measure {
	return func(ctx context.Context, b *bench) outcome {
		p := b.network()
		stream := job{
			Kind: kindStream, Target: p.rld.grpc, Flight: streamFlight, Frame: frame,
			Length: b.load / rateTurns,
		}
		unary := job{Kind: kindClosed, Target: p.rld.grpc, Flight: flight, Length: b.load / rateTurns}
		p.warm(b, stream, unary)
		return compare(perSecond, most, interleave(ctx, b.rounds(5), rateTurns, p.rate(stream), p.rate(unary)), "RLS unary")
	}
}

// sleep waits for a while or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

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

// file writes a file in the scratch folder and returns its path.
func (b *bench) file(name, text string) string {
	path := filepath.Join(b.dir, name)
	check(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// sizeSlack is by how many bytes the answers of the two servers may differ:
// numbers of the moment are longer or shorter.
const sizeSlack = 8

// peers is the processes of the lines over the network.
type peers struct {
	setup
	rld      *served
	noopAddr string // where the no-op listens
}

// startPeers starts the peers. Both servers must answer the same.
func (b *bench) startPeers(ctx context.Context) *peers {
	p := &peers{}
	b.cleanup.add(p.stop)
	p.rld = b.serve(ctx, b.file("bench.yaml", benchLimits()))
	p.add(p.rld.grpc, p.rld.child)
	noop := must(startRole(ctx, roleNoop, b.dir))
	p.cleanup.add(noop.stop)
	p.noopAddr = must(noop.readLine())
	p.servers[p.noopAddr] = noop
	p.startClient(ctx, b.dir)
	mine := p.ask(job{Kind: kindProbe, Target: p.rld.grpc}).Bytes
	other := p.ask(job{Kind: kindProbe, Target: p.noopAddr}).Bytes
	if d := mine - other; d < -sizeSlack || d > sizeSlack {
		check(fmt.Errorf("rld answers %d bytes and the no-op %d: not the same message", mine, other))
	}
	return p
}
