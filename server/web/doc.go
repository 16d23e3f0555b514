// Package web is the HTTP edge of rld: a gateway or a script checks a request
// with nothing but a URL.
//
//	GET|HEAD|POST /v1/check           one call, all descriptors or none
//	GET|HEAD      /api/v1/rate_limit  the same through a mapping of parameters
//	any           /v1/forward-auth/N  the same through the mapping N of headers
//	any           /json               Envoy's RLS in JSON, as upstream
//	any           /healthcheck        "OK" while the daemon is ready
//
// # The question
//
// In a query, d=key:value,key:value is one descriptor and may be repeated.
// It is split on ',' and ':' before it is percent-decoded, so %2C and %3A are
// part of a value; only the first ':' ends the key. Without any d, the
// parameters that are not reserved form one descriptor in their order. '+' is
// a space, as in forms. The reserved names are domain, d, hits, peek,
// deny_status and headers. A POST may carry a rld.v1.CheckRequest as JSON
// instead; then only deny_status and headers may stand in the query, since
// they are about the answer. An empty key is refused in either.
//
// /api/v1/rate_limit takes the parameters of its Mapping, of which those
// without a value count as missing, and hits, peek, deny_status and headers.
//
// /v1/forward-auth/ takes the headers of its mapping, see package gateway, and
// neither query nor body; with the setting target: path, path and query behind
// the name are those of the request that is asked about. A faulty request is a
// denial there, no failure. Its answers have the flat body, and the statuses of
// the mapping.
//
// HEAD asks and charges as GET does and gets no body. peek=true charges
// nothing and answers what the call would get. hits of 0 are refused, in a
// query and in a body, since a caller may mean 1 or none. A descriptor of a
// body may have hits of 0 of its own: it asks for no hit.
//
// # The answer
//
// 200 passes; 429, or the deny_status asked for, refuses. A refusal is data:
// 400 to 415 mean that the question was malformed and 503 that rld itself could
// not decide, so that a caller's fail-open rule is unambiguous. A caller that
// uses one of these numbers as deny_status reads Ratelimit, which only
// decisions carry, or the member error. One decision is a 503, too, whatever
// the deny_status: when the owner of a strict key does not answer and
// on_failure denies. It carries "allowed": false; callers that must fail closed
// check it.
//
// Every answer carries Cache-Control: no-store. Decisions carry
//
//	RateLimit-Policy, RateLimit   an item for each name of an enforced limit; of
//	                              several descriptors with one name the most
//	                              binding; of a bucket q is its burst, and w the
//	                              time in which it fills
//	Retry-After                   on every refusal that waiting helps: whole
//	                              seconds, at least 1
//	X-RateLimit-Status            "disabled" in shadow mode, else "degraded"
//	                              when an answer is degraded; "would_deny" on
//	                              what shadow mode admits of a mapping
//	X-RateLimit-Delay-Ms          how long to hold a passed request back
//	X-RateLimit-Limit, -Remaining, -Reset, -Window, -Policy
//	                              on request, for the most binding descriptor if it is enforced
//
// A 200 of /v1/check holds the JSON form of rld.v1.CheckResponse under the
// names of the proto file, with 64-bit amounts as numbers and the id as text,
// and beside it "allowed". A 200 of /api/v1/rate_limit is flat: allowed, and of
// the most binding limit, if any, rule, limit, window, burst (buckets),
// remaining, reset (Unix seconds), reset_after (seconds) and delay_ms. Either
// has would_deny where only shadow mode admits the call.
//
// A refusal is an application/problem+json document with error, message,
// allowed, the same members of the limit that refused, retry_after (seconds),
// violated-policies and documentation_url; on /v1/check with the statuses too.
// retry_after is that of the header, and reason is why the limit refused: see
// rld.v1.Status. For hits that are more than the limit ever holds the message
// states it.
// Every other error is a problem with error and message alone.
package web
