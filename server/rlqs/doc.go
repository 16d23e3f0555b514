// Package rlqs answers envoy.service.rate_limit_quota.v3.RateLimitQuotaService,
// by which Envoy decides on its own: it reports its admitted and its denied
// requests, and is assigned tokens to admit requests with. The tokens were
// charged before. Package session decides on them; this one reads and writes
// the messages, keeps the time, and charges hits through the engine that
// decides all other calls.
package rlqs
