// Package xds is the client side of the protocol by which an xDS server sends
// limits: the state of the world of
// ratelimit.config.ratelimit.v3.RateLimitConfig on an aggregated stream (ADS),
// as envoyproxy/ratelimit receives it. A Subscription gets responses and
// returns requests. Package daemon/xds has the streams.
//
// Each resource becomes one file of the limits language, so that limits of an
// xDS server have the checks, the diagnostics and the hash of limits in files.
// Equal sets make equal files, at every daemon and of every server.
//
// A set is accepted (ACK) or refused (NACK) as a whole. A refusal names the
// resource, the line of its file, the field of the resource, and what would be
// right. The former set stays.
package xds
