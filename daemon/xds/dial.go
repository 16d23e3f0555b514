package xds

import (
	"context"
	"maps"
	"net"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/georld/rld/limits/xds"
)

// Stream is a stream to an xDS server. One goroutine sends and one receives.
type Stream interface {
	Send(*discovery.DiscoveryRequest) error
	Recv() (*discovery.DiscoveryResponse, error)
}

// Dialer opens a stream that ends with ctx. end releases it.
type Dialer func(ctx context.Context, o *Options) (s Stream, end func(), err error)

// dialTimeout bounds an attempt to connect.
const dialTimeout = 20 * time.Second

// dial opens a stream over a new connection. It reads the files of TLS and
// headers each time, so that renewed ones count.
func dial(ctx context.Context, o *Options) (Stream, func(), error) {
	x := &o.Settings
	headers, _, err := x.ReadHeaders()
	if err != nil {
		return nil, nil, err
	}
	maps.Copy(headers, o.Headers)
	tls, _, err := x.TLS.Read("limits.xds.tls")
	if err != nil {
		return nil, nil, err
	}
	security := insecure.NewCredentials()
	if tls != nil {
		security = credentials.NewTLS(tls)
	}
	// The probes of TCP detect a server that is gone and did not close the
	// connection. Pings of HTTP/2 would end it: most servers forbid more than
	// one in five minutes.
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3,
	}}
	conn, err := grpc.NewClient(x.Server,
		grpc.WithTransportCredentials(security),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(xds.MaxResponseBytes), grpc.MaxCallSendMsgSize(maxRequestBytes)),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", addr) }),
		grpc.WithUserAgent("rld"), grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, nil, err
	}
	end := func() { conn.Close() } // the stream has ended: an error has no effect
	s, err := discovery.NewAggregatedDiscoveryServiceClient(conn).
		StreamAggregatedResources(metadata.NewOutgoingContext(ctx, metadata.New(headers)))
	if err != nil {
		end()
		return nil, nil, err
	}
	return s, end, nil
}

// maxRequestBytes bounds a request.
const maxRequestBytes = 64 << 10
