// Package rls answers envoy.service.ratelimit.v3.RateLimitService, the
// protocol that Envoy and everything built on it ask a rate limit service by.
// It matches envoyproxy/ratelimit's answers, with these additions in
// response_headers_to_add, where a gateway passes them on to its caller:
//
//   - x-rld-degraded: why an answer is less than exact, whenever it is;
//   - x-rld-delay-ms: how long to hold a passed request back (leaky_bucket);
//   - retry-after: on a denial, where rate limit headers are switched on.
//
// and these refusals where the reference answers Unknown, ignores a field or
// dies: a malformed call is InvalidArgument and names its fault, a limit
// override needs a unit and knows no multiplier. Negative hits give back no
// more than the daemon counted itself, and are Unimplemented without their
// setting.
package rls
