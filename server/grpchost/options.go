package grpchost

import (
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/georld/rld/internal/connlimit"
	"github.com/georld/rld/server/auth"
)

// Options configures a Host. See DefaultOptions.
type Options struct {
	// Log takes what goes wrong; nil discards it.
	Log *slog.Logger
	// Panicked is called once a caught panic, for a metric, with the method
	// that was called. It may be called by several goroutines at a time. Nil
	// is allowed.
	Panicked func(method string)

	// Authorizer admits callers to the reflection; nil admits all. Health is
	// open, and services check their callers themselves.
	Authorizer *auth.Authorizer
	// Reflection serves the descriptions of the services.
	Reflection bool
	// Credentials are those of the listeners; nil is plain text.
	Credentials credentials.TransportCredentials

	// MaxMessageBytes bounds a message from a client; a larger one is refused
	// with ResourceExhausted and both sizes.
	MaxMessageBytes int
	// MaxCancelledCalls bounds the calls that a connection cancels in a second,
	// as soon as it has begun them: one with more is closed.
	MaxCancelledCalls int
	// RefusedStream is called for each stream that is refused since its
	// connection has too many, for a metric. It may be called by several
	// goroutines at a time. Nil is allowed.
	RefusedStream func()
	// ConnectionAge and ConnectionGrace bound the lifetime of a connection:
	// after the age its client is asked to reconnect, after age and grace it is
	// closed.
	ConnectionAge, ConnectionGrace time.Duration
}

// DefaultOptions returns the options of a daemon on loopback. The ages are
// those of the reference.
func DefaultOptions() Options {
	return Options{
		MaxMessageBytes:   maxMessage,
		MaxCancelledCalls: 100,
		ConnectionAge:     24 * time.Hour,
		ConnectionGrace:   time.Hour,
	}
}

// Fixed settings of every server and connection.
const (
	// maxStreams bounds the calls in flight on one connection. A client waits
	// with more.
	maxStreams = 1_024
	// handshakeTimeout bounds how long a new connection may take to become one.
	// A connlimit.Listener is before it, and counts.
	handshakeTimeout = connlimit.HandshakeTimeout + 100*time.Millisecond
	// connectionIdle is how long a connection without a call stays open.
	connectionIdle = 5 * time.Minute
	// readBuffer is the memory for reading that a connection keeps, in bytes.
	// That for writing is shared by all connections.
	readBuffer = 8 << 10
	// workers is the number of goroutines that serve calls one after the
	// other. A used goroutine has the stack that a call needs, where a new
	// one would have to grow it; calls beyond the number get a new one. About
	// 16 KiB each.
	workers = 64
	// maxHeaderBytes bounds the headers of a call.
	maxHeaderBytes = 64 << 10
	// streamWindow is the bytes that a client may send ahead of our reads on
	// one stream, and connWindow ahead of what the connection has read: gRPC
	// reads whatever the calls do.
	streamWindow = 64 << 10
	connWindow   = 1 << 20
	// A connection without traffic is probed after probeAfter and cut when
	// the probe stays unanswered for probeTimeout.
	probeAfter, probeTimeout = time.Minute, 20 * time.Second
	// minClientProbe is how often a client may probe, with calls or without.
	minClientProbe = 10 * time.Second
)

// credentials returns those of Options, or none.
func (o *Options) credentials() credentials.TransportCredentials {
	if o.Credentials == nil {
		return insecure.NewCredentials()
	}
	return o.Credentials
}

// serverOptions returns the options as grpc takes them.
func (o *Options) serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(&transport{
			TransportCredentials: o.credentials(), cancelled: o.MaxCancelledCalls, incomplete: new(incompleteCalls), pace: newPace(),
		}),
		grpc.MaxRecvMsgSize(o.MaxMessageBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.ReadBufferSize(readBuffer),
		grpc.NumStreamWorkers(workers),
		grpc.WaitForHandlers(true),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle:     connectionIdle,
			MaxConnectionAge:      o.ConnectionAge,
			MaxConnectionAgeGrace: o.ConnectionGrace,
			Time:                  probeAfter,
			Timeout:               probeTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime:             minClientProbe,
			PermitWithoutStream: true,
		}),
	}
}
