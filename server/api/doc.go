// Package api answers rld.v1.RateLimiter, the native gRPC API: one call at a
// time (Check), or pipelined on a stream (CheckStream), where questions and
// answers share frames and a check costs a fraction of a call.
package api
