package grpchost

import (
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

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

	// Door admits callers to the reflection; nil admits all. The health is for
	// everyone, and services ask a door themselves.
	Door *auth.Door
	// Credentials are those of the listeners; nil is plain text.
	Credentials credentials.TransportCredentials

	// MaxMessageBytes bounds a message from a client; a larger one is refused
	// with ResourceExhausted and both sizes.
	MaxMessageBytes int
	// ConnectionAge and ConnectionGrace bound the lifetime of a connection:
	// after the age its client is asked to reconnect, after age and grace it is
	// closed.
	ConnectionAge, ConnectionGrace time.Duration
}

// DefaultOptions returns the options of a daemon on loopback. The ages are
// those of the reference.
func DefaultOptions() Options {
	return Options{
		MaxMessageBytes: 4 << 20,
		ConnectionAge:   24 * time.Hour,
		ConnectionGrace: time.Hour,
	}
}

// Fixed settings of every server and connection.
const (
	// maxStreams bounds the calls in flight on one connection. A client waits
	// with more.
	maxStreams = 1_024
	// handshakeTimeout bounds how long a new connection may take to become one.
	handshakeTimeout = 10 * time.Second
	// workers is the number of goroutines that serve calls one after the
	// other. A used goroutine has the stack that a call needs, where a new
	// one would have to grow it; calls beyond the number get a new one. About
	// 16 KiB each.
	workers = 64
	// maxHeaderBytes bounds the headers of a call.
	maxHeaderBytes = 64 << 10
	// streamWindow and connWindow are the bytes that a client may send ahead of
	// our reads, so they bound the memory of a connection.
	streamWindow = 256 << 10
	connWindow   = 1 << 20
	// A connection without traffic is probed after probeAfter and cut when
	// the probe stays unanswered for probeTimeout.
	probeAfter, probeTimeout = time.Minute, 20 * time.Second
	// minClientProbe is how often a client may probe, with calls or without.
	minClientProbe = 10 * time.Second
)

// serverOptions returns the options as grpc takes them.
func (o *Options) serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(o.Credentials),
		grpc.MaxRecvMsgSize(o.MaxMessageBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.NumStreamWorkers(workers),
		grpc.WaitForHandlers(true),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{
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
