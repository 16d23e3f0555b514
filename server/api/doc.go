// Package api answers rld.v1.RateLimiter, the native gRPC API: one call at a
// time (Check), or pipelined on a stream (CheckStream), where questions and
// answers share frames and a check costs a fraction of a call.
//
// Refund returns admitted hits that were not used. A refundable question gets a
// refund token per descriptor: the receipt of the charge, sealed with a key of
// this process. A token is valid once, at the daemon that charged, while the
// hits count; a restart forgets key and charges alike, and the hits stay
// counted. Refunded tokens are remembered until then, up to a bounded number;
// beyond that Refund fails, and nothing is lost.
package api
