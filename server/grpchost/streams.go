package grpchost

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/georld/rld/internal/loglimit"
)

// maxStreamsEach bounds the open streams of a connection, such as CheckStream,
// and maxStreamsAll those of all. Calls with one answer are not among them.
const (
	maxStreamsEach = 100
	maxStreamsAll  = maxIncomplete
)

// streams counts the open streams of each connection.
type streams struct {
	log     *slog.Logger
	refused func()
	lines   loglimit.Limiter

	mu   sync.Mutex
	open map[net.Addr]int // by remote address, of which each connection has its own
	all  int
}

// enter makes room for a stream. It returns an error, or a function to call at
// the end of the stream.
func (s *streams) enter(ctx context.Context) (leave func(), err error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return func() {}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[p.Addr] >= maxStreamsEach {
		s.refuse(p.Addr)
		return nil, status.Errorf(codes.ResourceExhausted, "this connection has %d open streams, which is the bound: "+
			"send several checks in a frame of one stream, or use another connection", maxStreamsEach)
	}
	if s.all >= maxStreamsAll {
		s.refuse(p.Addr)
		return nil, status.Errorf(codes.ResourceExhausted, "this daemon has %d open streams, which is the bound: "+
			"send several checks in a frame of one stream", maxStreamsAll)
	}
	if s.open == nil {
		s.open = make(map[net.Addr]int)
	}
	s.open[p.Addr]++
	s.all++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.open[p.Addr]--; s.open[p.Addr] == 0 {
			delete(s.open, p.Addr)
		}
	}, nil
}

// refuse counts a refused stream and logs it.
func (s *streams) refuse(remote net.Addr) {
	if s.refused != nil {
		s.refused()
	}
	if s.log != nil && s.lines.Due("streams", time.Now(), time.Minute) {
		s.log.Warn("stream refused: its connection or the daemon has too many", "remote", remote.String(), "bounds", []int{maxStreamsEach, maxStreamsAll})
	}
}
