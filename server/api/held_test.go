package api_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/georld/rld/internal/await"
	"github.com/georld/rld/internal/connlimit"
	"github.com/georld/rld/node"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/api"
	"github.com/georld/rld/server/message"
)

// heldAddr is the address of a connection that counts the bytes of its calls.
func heldAddr(t *testing.T) (remote net.Addr, held func() int) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lis.Close() })
	client, err := net.Dial("tcp", lis.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	conn, err := connlimit.New(lis, connlimit.Options{Name: "test"}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	var sum atomic.Int64
	connlimit.Of(conn.RemoteAddr()).OnHold(func(bytes int) { sum.Add(int64(bytes)) })
	return conn.RemoteAddr(), func() int { return int(sum.Load()) }
}

// TestUnreadAnswersAreHeld counts what a client holds that reads no answers,
// until it reads them.
func TestUnreadAnswersAreHeld(t *testing.T) {
	remote, held := heldAddr(t)
	s := api.New(answers(node.Status{Rule: &rules.Rule{Path: strings.Repeat("p", 1000)}}), server.DefaultSettings(), nil)
	p := openFrom(s, peer.NewContext(context.Background(), &peer.Peer{Addr: remote}))
	frame := make([]*rldv1.CheckRequest, 4*api.OutboxBytes/1000)
	for i := range frame {
		frame[i] = question(1, "v")
	}
	p.ask(t, frame...)
	await.True(t, "the frame is held", func() bool {
		return held() >= api.OutboxBytes+proto.Size(&rldv1.CheckFrame{Checks: frame})
	})
	close(p.asked)
	if _, end := p.rest(); end != nil {
		t.Error(end)
	}
	if held() != 0 {
		t.Errorf("%d bytes are held at the end", held())
	}
}

// TestWaitingQuestionsAreHeld counts what questions hold that wait for an
// owner: themselves, and not the frame that they came in.
func TestWaitingQuestionsAreHeld(t *testing.T) {
	remote, held := heldAddr(t)
	release := make(chan struct{})
	e := far(0)
	e.waits = func(context.Context, *node.Call) error {
		<-release
		return nil
	}
	ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: remote})
	s := api.New(e, server.DefaultSettings(), nil)
	p := openFrom(s, ctx)
	large := func(id uint64, value string) *rldv1.CheckRequest {
		q := question(id, value)
		q.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 1_000, protowire.BytesType), make([]byte, 10_000)))
		return q
	}
	far, size := large(1, "far"), proto.Size(large(1, "far"))
	p.ask(t, far, large(2, "near"), large(3, "near"), question(4, "far"))
	await.True(t, "the question is held", func() bool { return held() == size })
	for near := 0; near < 2; {
		near += len((<-p.answers).Answers)
	}
	close(release)
	close(p.asked)
	if _, end := p.rest(); end != nil || held() != 0 {
		t.Errorf("%v, and %d bytes are held at the end", end, held())
	}
}

// TestUnendedCallIsHeld counts a request from when it was read: gRPC waits for
// the end of the call before it is decided.
func TestUnendedCallIsHeld(t *testing.T) {
	remote, held := heldAddr(t)
	h := register(api.New(answers(node.Status{}), server.DefaultSettings(), nil))
	large := protowire.AppendBytes(protowire.AppendTag(nil, 1_000, protowire.BytesType), make([]byte, 10_000))
	read := func(v any) error {
		err := message.NewCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(large)}, v)
		if held() != len(large) {
			t.Errorf("%d bytes are held of a request of %d", held(), len(large))
		}
		return err
	}
	ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: remote})
	for _, m := range h.desc.Methods {
		if _, _ = m.Handler(h.server, ctx, read, nil); held() != 0 {
			t.Errorf("%s: %d bytes are held at the end", m.MethodName, held())
		}
	}
}

// TestUnsentAnswersAreHeld counts the answers that gRPC has taken over, once
// they are many, until it gives their buffers back, also after the stream.
func TestUnsentAnswersAreHeld(t *testing.T) {
	remote, held := heldAddr(t)
	ctx, cancel := context.WithCancel(peer.NewContext(context.Background(), &peer.Peer{Addr: remote}))
	defer cancel()
	const size = 20_000
	for _, cancelled := range []bool{false, true} {
		u := api.NewUnsent(ctx)
		want := func(what string, bytes int) {
			t.Helper()
			if held() != bytes {
				t.Errorf("%s: %d bytes are held, want %d", what, held(), bytes)
			}
		}
		var all []*[]byte
		encode := func(n int) {
			b := make([]byte, n)
			u.Encode(&b)
			all = append(all, &b)
		}
		encode(size)
		want("few", 0)
		encode(size)
		want("many", 2*size)
		u.Encode(new(make([]byte, 100)))
		want("a small one beside them", 2*size)
		u.Put(all[0])
		want("one is sent", 0)
		encode(size)
		if cancelled {
			cancel()
			u.End()
			want("a cancelled stream ends", 0)
		} else {
			u.End()
			want("the stream ends", 2*size)
		}
		u.Put(all[1])
		u.Put(all[2])
		want("all are sent", 0)
	}
}
