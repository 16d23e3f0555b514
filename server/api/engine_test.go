package api_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/api"
	"github.com/georld/rld/server/message"
)

// asked is what an engine was asked.
type asked struct {
	Domain      string
	Descriptors []rules.Descriptor
	Peek        bool
}

// engine records its calls and answers as check decides, or admits everything.
type engine struct {
	mu    sync.Mutex
	calls []asked
	check func(c *node.Call) error
	// waits returns when a call need not wait any longer, or with ctx. waiting
	// reports which calls wait at all; nil: none.
	waiting func(c *node.Call) bool
	waits   func(ctx context.Context, c *node.Call) error

	incarnation crdt.Incarnation
	refunds     []uint64
	refunded    node.Refunded // the answer to refunds beside hits
}

func (e *engine) Check(ctx context.Context, c *node.Call) error {
	if e.waiting != nil && e.waiting(c) {
		if err := e.waits(ctx, c); err != nil {
			return err
		}
	}
	a := asked{Domain: c.Domain, Peek: c.Peek}
	for _, d := range c.Descriptors {
		d.Entries = slices.Clone(d.Entries)
		a.Descriptors = append(a.Descriptors, d)
	}
	e.mu.Lock()
	e.calls = append(e.calls, a)
	number := uint64(len(e.calls))
	e.mu.Unlock()
	c.Decision = node.Decision{Allowed: true, Refused: -1}
	for i := range c.Descriptors { // refund tokens for all hits, under the ID 7
		if c.Refundable && !c.Peek {
			c.Receipts = append(c.Receipts, node.Receipt{Number: number, ID: 7, Hits: c.Descriptors[i].Hits})
		}
	}
	if e.check != nil {
		return e.check(c)
	}
	return nil
}

func (*engine) Rules() *rules.Set { return nil }

func (e *engine) TryCheck(c *node.Call) (bool, error) {
	if e.waiting != nil && e.waiting(c) {
		return false, nil
	}
	return true, e.Check(context.Background(), c)
}

// Refund refunds all hits of the request, unless it is set to another answer.
func (e *engine) Refund(r *node.Receipt, hits uint64) node.Refunded {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refunds = append(e.refunds, hits)
	if e.refunded != (node.Refunded{}) {
		return e.refunded
	}
	return node.Refunded{Hits: hits}
}

func (e *engine) Incarnation() crdt.Incarnation { return e.incarnation }

func (*engine) Whose(incarnation crdt.Incarnation) string {
	if incarnation == 2 {
		return "b1 in b"
	}
	return ""
}

// asks returns the calls of the engine so far.
func (e *engine) asks() []asked {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.calls)
}

// answers returns an engine that answers with statuses, and passes the call
// unless one of them refuses.
func answers(statuses ...node.Status) *engine {
	return &engine{check: func(c *node.Call) error {
		c.Statuses = append(c.Statuses[:0], statuses...)
		for i := range statuses {
			if statuses[i].Refuses() {
				c.Decision = node.Decision{Refused: i}
				break
			}
		}
		return nil
	}}
}

// recorder counts its events, by edge.
type recorder struct {
	mu                 sync.Mutex
	decided, malformed map[server.Edge]int
}

func newRecorder() *recorder {
	return &recorder{decided: map[server.Edge]int{}, malformed: map[server.Edge]int{}}
}

func (r *recorder) Decided(e server.Edge, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if took < 0 {
		e = "negative"
	}
	r.decided[e]++
}

func (r *recorder) Malformed(e server.Edge) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.malformed[e]++
}

// counts returns the decisions and the malformed questions of an edge.
func (r *recorder) counts(e server.Edge) [2]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return [2]int{r.decided[e], r.malformed[e]}
}

// dial serves s in memory and returns a connection to it.
func dial(t *testing.T, s *api.Service, o ...grpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	lis := bufconn.Listen(1 << 16)
	srv := grpc.NewServer(append(o, grpc.ForceServerCodecV2(message.NewCodec()))...)
	s.Register(srv)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(lis) }()
	conn, err := grpc.NewClient("passthrough:///rld",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return lis.DialContext(ctx)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		srv.Stop()
		s.Wait()
		if err := <-done; err != nil {
			t.Errorf("serving ended with %v", err)
		}
	})
	return conn
}

// question returns a check of one descriptor.
func question(id uint64, value string) *rldv1.CheckRequest {
	return &rldv1.CheckRequest{Id: id, Domain: "edge", Descriptors: []*rldv1.Descriptor{descriptor("k", value)}}
}

// descriptor returns a descriptor of the keys and values given in turn.
func descriptor(pairs ...string) *rldv1.Descriptor {
	d := new(rldv1.Descriptor)
	for i := 0; i < len(pairs); i += 2 {
		d.Entries = append(d.Entries, &rldv1.Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return d
}
