// Package grpchost runs the gRPC server that the gRPC edges live in: options,
// health, reflection, a net under panics, and a drain that loses no call.
package grpchost
