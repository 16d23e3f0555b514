package api_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/georld/rld/node"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/api"
	"github.com/georld/rld/server/auth"
)

// guarded returns settings with a token for domain d, and one that may only
// read.
func guarded() (server.Settings, *auth.Authorizer) {
	s := server.DefaultSettings()
	s.Authorizer = auth.NewAuthorizer(auth.Tokens{
		{Name: "d", SHA256: auth.Hash("right"), Domains: []string{"d"}},
		{Name: "eyes", SHA256: auth.Hash("reads"), Domains: []string{"d"}, Verb: auth.Read},
		{Name: "slow", SHA256: auth.Hash("slow"), Domains: []string{"d"}, Rate: 0.001},
	}, nil)
	return s, s.Authorizer
}

func with(ctx context.Context, token string) context.Context {
	if token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

// TestAuthorization calls with right, wrong and missing credentials, one call
// at a time and on a stream. A refused call does not reach the engine.
func TestAuthorization(t *testing.T) {
	for _, tt := range []struct {
		name, token, domain string
		peek                bool
		calls               int
		want                codes.Code
	}{
		{"right", "right", "d", false, 1, codes.OK},
		{"missing", "", "d", false, 1, codes.Unauthenticated},
		{"wrong", "wrong", "d", false, 1, codes.Unauthenticated},
		{"wrong domain", "right", "e", false, 1, codes.PermissionDenied},
		{"peek", "reads", "d", true, 1, codes.OK},
		{"wrong verb", "reads", "d", false, 1, codes.PermissionDenied},
		{"rate", "slow", "d", false, 2, codes.ResourceExhausted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			settings, _ := guarded()
			rec := newRecorder()
			e := answers(node.Status{})
			client := rldv1.NewRateLimiterClient(dial(t, api.New(e, settings, rec)))
			ctx := with(t.Context(), tt.token)
			q := question(1, "v")
			q.Domain, q.Peek = tt.domain, tt.peek
			var err error
			for range tt.calls {
				_, err = client.Check(ctx, q)
			}
			if got := status.Code(err); got != tt.want {
				t.Errorf("Check: %v, want %v", err, tt.want)
			}

			settings, _ = guarded()
			client = rldv1.NewRateLimiterClient(dial(t, api.New(e, settings, rec)))
			stream, err := client.CheckStream(ctx)
			if err != nil {
				t.Fatal(err)
			}
			frame := &rldv1.CheckFrame{}
			for range tt.calls {
				frame.Checks = append(frame.Checks, q)
			}
			stream.Send(frame) // of a stream that was refused: Recv returns why
			stream.CloseSend()
			var got codes.Code
			for n := 0; n < tt.calls; {
				f, err := stream.Recv()
				if err != nil {
					got = status.Code(err)
					break
				}
				for _, a := range f.Answers {
					got = codes.Code(a.GetError().GetCode())
					n++
				}
			}
			if got != tt.want {
				t.Errorf("CheckStream: %v, want %v", got, tt.want)
			}
			admitted := 2 * tt.calls
			if tt.want != codes.OK {
				admitted -= 2
			}
			if n := len(e.asks()); n != admitted {
				t.Errorf("the engine was asked %d times, want %d", n, admitted)
			}
			if n := rec.counts(server.EdgeNative)[1] + rec.counts(server.EdgeStream)[1]; n != 0 {
				t.Errorf("%d refused calls count as malformed", n)
			}
		})
	}
}

// TestStreamWithoutCredentials ends before it asks anything.
func TestStreamWithoutCredentials(t *testing.T) {
	settings, _ := guarded()
	client := rldv1.NewRateLimiterClient(dial(t, api.New(answers(), settings, nil)))
	for _, token := range []string{"", "wrong"} {
		ctx, cancel := context.WithTimeout(with(t.Context(), token), 10*time.Second)
		defer cancel()
		stream, err := client.CheckStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != codes.Unauthenticated {
			t.Errorf("with the token %q: %v", token, err)
		}
	}
}

// TestWithdrawnTokenOnAStream withdraws the token of a stream that is open.
func TestWithdrawnTokenOnAStream(t *testing.T) {
	settings, authorizer := guarded()
	client := rldv1.NewRateLimiterClient(dial(t, api.New(answers(node.Status{}), settings, nil)))
	stream, err := client.CheckStream(with(t.Context(), "right"))
	if err != nil {
		t.Fatal(err)
	}
	ask := func() codes.Code {
		t.Helper()
		q := question(1, "v")
		q.Domain = "d"
		if err := stream.Send(&rldv1.CheckFrame{Checks: []*rldv1.CheckRequest{q}}); err != nil {
			t.Fatal(err)
		}
		f, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return codes.Code(f.Answers[0].GetError().GetCode())
	}
	if got := ask(); got != codes.OK {
		t.Errorf("before: %v", got)
	}
	authorizer.Replace(nil)
	if got := ask(); got != codes.Unauthenticated {
		t.Errorf("after: %v", got)
	}
}

// TestRefundAuthorization refunds without and with credentials.
func TestRefundAuthorization(t *testing.T) {
	settings, _ := guarded()
	client := rldv1.NewRateLimiterClient(dial(t, api.New(answers(), settings, nil)))
	if _, err := client.Refund(t.Context(), &rldv1.RefundRequest{}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("without a token: %v", err)
	}
	if _, err := client.Refund(with(t.Context(), "reads"), &rldv1.RefundRequest{}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("with one that may only read: %v", err)
	}
	if _, err := client.Refund(with(t.Context(), "right"), &rldv1.RefundRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("with the right one, and no refund token: %v", err)
	}
}
