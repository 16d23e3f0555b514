package rls_test

import (
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/georld/rld/node"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/auth"
	"github.com/georld/rld/server/rls"
)

// TestAuthorization calls with right, wrong and missing credentials.
func TestAuthorization(t *testing.T) {
	for _, tt := range []struct {
		name, token string
		want        codes.Code
	}{
		{"right", "right", codes.OK},
		{"missing", "", codes.Unauthenticated},
		{"wrong", "wrong", codes.Unauthenticated},
		{"wrong domain", "other", codes.PermissionDenied},
		{"wrong verb", "reads", codes.PermissionDenied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := request(descriptor("a", "1"))
			s := server.DefaultSettings()
			s.Authorizer = auth.NewAuthorizer(auth.Tokens{
				{Name: "right", SHA256: auth.Hash("right"), Domains: []string{in.GetDomain()}},
				{Name: "other", SHA256: auth.Hash("other"), Domains: []string{in.GetDomain() + "2"}},
				{Name: "reads", SHA256: auth.Hash("reads"), Domains: []string{"*"}, Verb: auth.Read},
			}, nil)
			ctx := t.Context()
			if tt.token != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+tt.token)
			}
			e := answers(node.Status{Limit: limit(10)})
			_, err := ratelimitv3.NewRateLimitServiceClient(dial(t, rls.New(e, s, nil))).ShouldRateLimit(ctx, in)
			if got := status.Code(err); got != tt.want {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if asked := len(e.calls) > 0; asked != (tt.want == codes.OK) {
				t.Errorf("the engine was asked: %v", asked)
			}
		})
	}
}
