package link

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// open dials a daemon as a peer of the test's own making.
func (n *network) open(t *testing.T, d *daemon) peerStream {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///test",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return n.dial(ctx, d.addr) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	stream, err := rldv1.NewPeersClient(conn).Exchange(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// greet opens a stream, and exchanges hellos and proofs.
func (n *network) greet(t *testing.T, d *daemon, h Hello) peerStream {
	t.Helper()
	stream := n.open(t, d)
	s := n.hello(t, stream, greetingFrom(h))
	if err := stream.SendMsg(&item{kind: kindProof, body: s.prove(keyOf(h), dialing)}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return stream
}

// hello sends a hello, and receives the hello and the proof of the acceptor.
func (n *network) hello(t *testing.T, stream peerStream, g greeting) handshake {
	t.Helper()
	s := handshake{dialer: encoded(t, g)}
	if err := stream.SendMsg(&item{kind: kindHello, body: s.dialer}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []kind{kindHello, kindProof} {
		var it item
		if err := stream.RecvMsg(&it); err != nil || it.kind != want {
			t.Fatalf("answer to a hello: %s, error %v", it.kind, err)
		}
		if want == kindHello {
			s.acceptor = bytes.Clone(it.body)
		}
		it.free()
	}
	return s
}

// keyOf returns the key of a daemon in a test, another one for each
// incarnation.
func keyOf(h Hello) *control.Key { return identityOf(h.Member.ID).Key }

func identityOf(id crdt.Incarnation) control.Identity {
	seed := control.InsecureSeed(rand.New(rand.NewPCG(uint64(id), 1)))
	return control.Identity{Key: seed.Key(0), Run: seed.Run()}
}

func greetingFrom(h Hello) greeting {
	return greeting{
		protocol: Version, secrets: Fingerprints{{}}, hello: h,
		public: keyOf(h).Public(), nonce: make([]byte, nonceSize),
	}
}

func encoded(t *testing.T, g greeting) []byte {
	t.Helper()
	b, err := g.encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// end returns how a stream of the test's own making ended.
func end(stream peerStream) error {
	for {
		var it item
		if err := stream.RecvMsg(&it); err != nil {
			if err == io.EOF {
				return err
			}
			return peerError(err, stream.Trailer())
		}
		it.free()
	}
}

// impostor is an acceptor with arbitrary answers.
type impostor struct {
	rldv1.UnimplementedPeersServer
	hello []byte
	prove func(s *handshake) []byte // nil for no proof
	items []item
}

// impersonate serves on an address what an acceptor would send after its hello
// and its proof.
func (n *network) impersonate(t *testing.T, addr string, g greeting, items ...item) {
	t.Helper()
	n.impersonateBy(t, addr, &impostor{
		hello: encoded(t, g), items: items, prove: func(s *handshake) []byte { return s.prove(keyOf(g.hello), accepting) },
	})
}

func (n *network) impersonateBy(t *testing.T, addr string, i *impostor) {
	t.Helper()
	server := grpc.NewServer(grpc.ForceServerCodecV2(codec{}), grpc.WaitForHandlers(true))
	rldv1.RegisterPeersServer(server, i)
	lis := n.listen(addr)
	go func() { _ = server.Serve(lis) }()
	t.Cleanup(server.Stop)
}

func (i *impostor) Exchange(stream grpc.BidiStreamingServer[rldv1.PeerItem, rldv1.PeerItem]) error {
	var it item
	if err := stream.RecvMsg(&it); err != nil {
		return err
	}
	s := handshake{dialer: bytes.Clone(it.body), acceptor: i.hello}
	it.free()
	items := []item{{kind: kindHello, body: i.hello}}
	if i.prove != nil {
		items = append(items, item{kind: kindProof, body: i.prove(&s)})
	}
	for k := range items {
		if err := stream.SendMsg(&items[k]); err != nil {
			return err
		}
	}
	for k := range i.items {
		if err := stream.SendMsg(&i.items[k]); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return nil
}

// The types of HTTP/2 frames, and a flag.
const (
	http2Data     = 0
	http2Headers  = 1
	http2Settings = 4
	endHeaders    = 4
)

// http2Frame returns one frame of HTTP/2.
func http2Frame(kind, flags byte, stream uint32, payload []byte) []byte {
	b := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, payload...)
}

// exchangeHeaders returns the headers of a call of Exchange, each spelled out.
func exchangeHeaders() []byte {
	var b []byte
	for _, h := range [][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", rldv1.Peers_Exchange_FullMethodName},
		{":authority", "test"},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
	} {
		b = append(b, 0, byte(len(h[0])))
		b = append(b, h[0]...)
		b = append(b, byte(len(h[1])))
		b = append(b, h[1]...)
	}
	return b
}

// rawCall returns the bytes of a call that sends a hello and then announces a
// message of a size without sending it.
func rawCall(hello []byte, announced uint32) []byte {
	message := protowire.AppendTag(nil, protowire.Number(kindHello), protowire.BytesType)
	message = protowire.AppendBytes(message, hello)
	first := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	first = append(first, message...)
	second := binary.BigEndian.AppendUint32([]byte{0}, announced)
	b := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	b = append(b, http2Frame(http2Settings, 0, 0, nil)...)
	b = append(b, http2Frame(http2Headers, endHeaders, 1, exchangeHeaders())...)
	b = append(b, http2Frame(http2Data, 0, 1, first)...)
	return append(b, http2Frame(http2Data, 0, 1, second)...)
}
