package rls

import (
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/georld/rld/rules"
)

// overrideUnitOf returns the unit of a limit override, which knows no week;
// NoUnit when it has none or an unknown one.
func overrideUnitOf(u int32) rules.Unit {
	switch typev3.RateLimitUnit(u) {
	case typev3.RateLimitUnit_SECOND:
		return rules.Second
	case typev3.RateLimitUnit_MINUTE:
		return rules.Minute
	case typev3.RateLimitUnit_HOUR:
		return rules.Hour
	case typev3.RateLimitUnit_DAY:
		return rules.Day
	case typev3.RateLimitUnit_MONTH:
		return rules.Month
	case typev3.RateLimitUnit_YEAR:
		return rules.Year
	}
	return rules.NoUnit
}

// limitUnit returns the unit as RateLimitResponse.RateLimit has it, whose
// numbers are not in the order of length.
func limitUnit(u rules.Unit) ratelimitv3.RateLimitResponse_RateLimit_Unit {
	switch u {
	case rules.Second:
		return ratelimitv3.RateLimitResponse_RateLimit_SECOND
	case rules.Minute:
		return ratelimitv3.RateLimitResponse_RateLimit_MINUTE
	case rules.Hour:
		return ratelimitv3.RateLimitResponse_RateLimit_HOUR
	case rules.Day:
		return ratelimitv3.RateLimitResponse_RateLimit_DAY
	case rules.Week:
		return ratelimitv3.RateLimitResponse_RateLimit_WEEK
	case rules.Month:
		return ratelimitv3.RateLimitResponse_RateLimit_MONTH
	case rules.Year:
		return ratelimitv3.RateLimitResponse_RateLimit_YEAR
	}
	return ratelimitv3.RateLimitResponse_RateLimit_UNKNOWN
}
