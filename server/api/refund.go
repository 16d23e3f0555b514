package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/auth"
	"github.com/georld/rld/server/message"
)

// Engine decides calls and refunds their charges. Implementations are safe for
// concurrent use.
type Engine interface {
	server.Engine
	// TryCheck is Check for a call that waits for no owner. It returns false,
	// and has charged nothing, for one that has to: then it is for Check.
	TryCheck(c *node.Call) (decided bool, err error)
	// Refund returns up to hits of a receipt of this engine to its window,
	// once.
	Refund(r *node.Receipt, hits uint64) node.Refunded
	// Incarnation is the incarnation that charges.
	Incarnation() crdt.Incarnation
	// Whose returns the name of the live daemon that an incarnation is of, ""
	// for one that is not known.
	Whose(incarnation crdt.Incarnation) string
}

// The fields of RefundRequest and RefundResponse.
const (
	refundToken = 1<<3 | message.Len
	refundHits  = 2<<3 | message.Varint

	refundedHits    = 1<<3 | message.Varint
	refundedExpired = 2<<3 | message.Varint
	refundedAlready = 3<<3 | message.Varint
)

// refundCall is a RefundRequest.
type refundCall struct {
	message.Held
	token string
	hits  uint64
	some  bool // hits are given
	err   error
}

// ReadMessage reads a RefundRequest. refund returns its faults.
func (g *refundCall) ReadMessage(text string) {
	g.Keep(len(text))
	s := message.Scan(text)
	for s.Next() {
		switch s.Tag {
		case refundToken:
			g.token = s.Text
		case refundHits:
			g.hits, g.some = s.Uint, true
		}
	}
	g.err = s.Err()
}

// refund returns the hits of a request's token, once. The domain is not
// checked: the holder of a refund token was admitted in its domain.
func (s *Service) refund(ctx context.Context, g *refundCall) ([]byte, error) {
	if s.settings.Authorizer != nil {
		if err := s.settings.Authorizer.Admit(auth.FromGRPC(ctx), auth.Need{AnyDomain: true}, time.Now()); err != nil {
			return nil, message.StatusOf(err).Err()
		}
	}
	t, st := s.redeem(g)
	if st != nil {
		if st.Code() == codes.InvalidArgument {
			s.recorder.Malformed(server.EdgeNative)
		}
		return nil, st.Err()
	}
	hits := t.Receipt.Hits
	if g.some {
		hits = g.hits
	}
	done := s.engine.Refund(&t.Receipt, hits)
	if done.Full {
		return nil, status.Error(codes.ResourceExhausted,
			"too many refunds are remembered until their windows are over: try again later")
	}
	b := message.AppendUint(nil, refundedHits, done.Hits)
	b = message.AppendBool(b, refundedExpired, done.Expired)
	return message.AppendBool(b, refundedAlready, done.Already), nil
}

// redeem returns the token of a request that may be refunded here, or why not.
func (s *Service) redeem(g *refundCall) (t replica.RefundToken, _ *status.Status) {
	if g.err != nil {
		return t, status.Newf(codes.InvalidArgument, "malformed RefundRequest: %v", g.err)
	}
	t, err := s.sealer.Open(g.token, s.engine.Incarnation())
	var foreign *replica.ForeignTokenError
	switch {
	case errors.As(err, &foreign):
		return t, status.New(codes.FailedPrecondition, elsewhere(foreign, s.engine.Whose(foreign.Incarnation)))
	case err != nil:
		return t, status.New(codes.InvalidArgument, err.Error())
	}
	if most := t.Receipt.Hits; g.some && (g.hits == 0 || g.hits > most) {
		return t, status.Newf(codes.InvalidArgument,
			"refund of %d hits, want 1 to %d, which were charged, or none for all", g.hits, most)
	}
	return t, nil
}

// elsewhere describes the daemon that charged the hits of a token that was sent
// here.
func elsewhere(err *replica.ForeignTokenError, name string) string {
	if name == "" {
		return fmt.Sprintf("%v, which is no live daemon known here: if it has restarted they cannot be refunded", err)
	}
	return fmt.Sprintf("the hits were charged by daemon %s (incarnation %v): refund them there", name, err.Incarnation)
}
