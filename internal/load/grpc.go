package load

import (
	"context"
	"fmt"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// RLS returns a Call of Envoy's service. next returns the request of the next
// call, and verify the fault of its answer.
func RLS(
	conn grpc.ClientConnInterface, next func() *ratelimitv3.RateLimitRequest,
	verify func(*ratelimitv3.RateLimitResponse) error,
) Call {
	stub := ratelimitv3.NewRateLimitServiceClient(conn)
	return func(ctx context.Context) (bool, error) {
		answer, err := stub.ShouldRateLimit(ctx, next())
		if err != nil {
			return false, err
		}
		return answer.OverallCode == ratelimitv3.RateLimitResponse_OK, verify(answer)
	}
}

// HasCode returns an error for an answer without a decision.
func HasCode(r *ratelimitv3.RateLimitResponse) error {
	switch r.OverallCode {
	case ratelimitv3.RateLimitResponse_OK, ratelimitv3.RateLimitResponse_OVER_LIMIT:
		return nil
	}
	return noVerdict(r.OverallCode.String())
}

// Check returns a Call of the native service.
func Check(conn grpc.ClientConnInterface, next func() *rldv1.CheckRequest) Call {
	stub := rldv1.NewRateLimiterClient(conn)
	return func(ctx context.Context) (bool, error) {
		answer, err := stub.Check(ctx, next())
		if err != nil {
			return false, err
		}
		return admitted(answer)
	}
}

// admitted returns the verdict of an answer.
func admitted(answer *rldv1.CheckResponse) (bool, error) {
	switch answer.Code {
	case rldv1.Code_ALLOWED:
		return true, nil
	case rldv1.Code_DENIED:
		return false, nil
	}
	return false, noVerdict(answer.Code.String())
}

// noVerdict is the error for an answer without a decision.
type noVerdict string

func (e noVerdict) Error() string { return fmt.Sprintf("an answer without a verdict: %s", string(e)) }

// Code is that of the counts.
func (e noVerdict) Code() string { return "no verdict" }
