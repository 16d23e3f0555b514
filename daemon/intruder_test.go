package daemon

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec of handmade handshakes

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/gossip/swim"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/internal/certs"
	"github.com/georld/rld/node"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/wire"
)

// intruder is a daemon that sends invalid input over real streams and real
// membership. It does no share of the work.
type intruder struct {
	w     *world
	ip    string
	hello link.Hello
	host  *link.Host
	swim  *swim.Swim
	nonce uint64
}

// Frame, Connected, Disconnected and Members make it a link.Handler that does
// nothing.
func (*intruder) Frame(link.Hello, []byte) error         { return nil }
func (*intruder) Connected(string, link.Hello)           {}
func (*intruder) Disconnected(string, link.Hello, error) {}
func (*intruder) Members(link.Hello, []gossip.Member)    {}

// ipIn returns a free host of a region, or of no region of the world.
func (w *world) ipIn(region string) string {
	if near := w.in(region); len(near) > 0 {
		return strings.TrimSuffix(near[0].ip, "1") + "9"
	}
	return "10.9.0.9"
}

// intrude starts an intruder that dials all daemons, and joins the membership
// of its region if the world has it. mend changes its configuration; nil keeps
// a correct one.
func (w *world) intrude(region string, mend func(*link.Config, *swim.Config)) *intruder {
	w.t.Helper()
	m := &intruder{w: w, ip: w.ipIn(region)}
	m.hello = link.Hello{
		Member: gossip.Member{
			Peer: gossip.Peer{ID: 0xbad, Name: "mallory", Region: region}, Addr: m.ip + ":7947", Build: "test",
		},
		Shards: worldShards, Rules: w.rules.Hash(),
	}
	lc := link.Config{Self: func() link.Hello { return m.hello }, Dial: w.fabric.dialer(m.ip), Handler: m}
	sc := swim.Config{Self: m.hello.Member, Keys: [][]byte{swimKey}}
	if mend != nil {
		mend(&lc, &sc)
	}
	m.stream(lc)
	if near := w.in(region); len(near) > 0 {
		sc.Seeds = near[0].seeds
		m.join(sc)
	}
	return m
}

// stream serves streams and dials all daemons.
func (m *intruder) stream(c link.Config) {
	w := m.w
	m.host = link.New(c)
	lis, err := w.fabric.listen(m.hello.Member.Addr)
	if err != nil {
		w.t.Fatal(err)
	}
	go func() { _ = m.host.Serve(lis) }()
	w.t.Cleanup(func() {
		m.host.Close()
		lis.Close()
	})
	m.host.SendMembers([]gossip.Member{m.hello.Member})
	var targets []link.Target
	for _, r := range w.residents {
		targets = append(targets, link.Target{Addr: r.peerAddr()})
	}
	m.host.Targets(targets)
}

// join joins the membership.
func (m *intruder) join(c swim.Config) {
	w := m.w
	var err error
	if c.Transport, err = w.swims.Transport(m.ip + ":7946"); err != nil {
		w.t.Fatal(err)
	}
	if m.swim, err = swim.Start(c); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = m.swim.Close() })
}

// accepted returns an intruder that a daemon accepts as a peer.
func (w *world) accepted(region string, victim *resident) *intruder {
	w.t.Helper()
	m := w.intrude(region, nil)
	w.within(10*time.Second, "the intruder is a peer", func() bool {
		m.send(victim, m.frame(victim)) // a frame introduces a daemon of another region
		return victim.knows("mallory")
	})
	return m
}

// message returns a correct message with cells of one shard.
func (m *intruder) message(to *resident, cells ...gossip.Cell) gossip.Message {
	m.nonce++
	shard := 0
	if len(cells) > 0 {
		shard = node.ShardOf(cells[0].Key, worldShards)
	}
	return gossip.Message{
		From: m.hello.Member.ID, To: to.self.ID, Shard: shard, Shards: worldShards,
		Header: gossip.Header{Stamp: hlc.New(time.Now().UnixMilli(), 0), Rules: m.hello.Rules, Nonce: m.nonce},
		Part:   gossip.Part{Hi: m.nonce, Complete: true, Cells: cells},
	}
}

// frame returns a correct frame with a message.
func (m *intruder) frame(to *resident, cells ...gossip.Cell) []byte {
	return m.encode(m.message(to, cells...))
}

func (m *intruder) encode(msg gossip.Message) []byte {
	m.w.t.Helper()
	frame, err := wire.Encode(nil, []gossip.Message{msg})
	if err != nil {
		m.w.t.Fatal(err)
	}
	return frame
}

// send sends a frame once there is a stream.
func (m *intruder) send(to *resident, frame []byte) {
	m.w.t.Helper()
	m.w.within(10*time.Second, "the intruder has a stream", func() bool { return m.host.Send(to.self.ID, bytes.Clone(frame)) })
}

// cellOf returns the cell of a hit of a user that a daemon counts.
func (r *resident) cellOf(user string) gossip.Cell {
	t := r.world.t
	t.Helper()
	r.hits(1, "user", user)
	c := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(1, "user", user)}}
	if err := r.engine.front.Load().Resolve(&c); err != nil {
		t.Fatal(err)
	}
	key := c.Hits()[0].Key
	s := r.engine.shards[node.ShardOf(key, worldShards)]
	s.lock()
	defer s.mu.Unlock()
	for _, cell := range s.node.Cells(r.engine.Now(), nil) {
		if cell.Key == key && cell.Incarnation == r.self.ID {
			return cell
		}
	}
	t.Fatalf("%s has no cell of %s", r.name, user)
	return gossip.Cell{}
}

// forged returns a frame that differs from a correct one in one byte and is
// rejected for a reason. No encoder writes it.
func forged(from, to crdt.Incarnation, frame []byte, reason string) []byte {
	for i := range frame {
		for b := range 256 {
			other := bytes.Clone(frame)
			other[i] = byte(b)
			wire.SetCountsChecksum(from, to, other)
			if _, err := new(wire.Decoder).Decode(from, to, other); err != nil && strings.Contains(err.Error(), reason) {
				return other
			}
		}
	}
	return nil
}

// greet sends a handshake, as a peer of another release would, and returns the
// error.
func (w *world) greet(to *resident, hello *rldv1.PeerHello) error {
	w.t.Helper()
	conn, err := grpc.NewClient("passthrough:///peer",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return w.fabric.dial(ctx, "10.9.0.9", to.peerAddr())
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	stream, err := rldv1.NewPeersClient(conn).Exchange(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := stream.Send(&rldv1.PeerItem{Item: &rldv1.PeerItem_Hello{Hello: hello}}); err != nil {
		w.t.Fatal(err)
	}
	_, err = stream.Recv()
	return err
}

// announce sends a correct handshake and the header of a message of a size
// without the message. It returns when the daemon has ended the stream.
func (w *world) announce(to *resident, size uint32) {
	w.t.Helper()
	item := &rldv1.PeerItem{Item: &rldv1.PeerItem_Hello{Hello: w.helloOf("mars", "mallory")}}
	hello, err := encoding.GetCodecV2("proto").Marshal(item)
	if err != nil {
		w.t.Fatal(err)
	}
	body := binary.BigEndian.AppendUint32([]byte{0}, uint32(hello.Len()))
	body = append(body, hello.Materialize()...)
	body = binary.BigEndian.AppendUint32(append(body, 0), size)
	var plain http.Protocols
	plain.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &plain, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return w.fabric.dial(ctx, "10.9.0.9", to.peerAddr())
	}}
	defer transport.CloseIdleConnections()
	more, end := io.Pipe() // sends nothing more, and no end
	defer end.Close()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	rq, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://peer"+rldv1.Peers_Exchange_FullMethodName,
		io.MultiReader(bytes.NewReader(body), more))
	if err != nil {
		w.t.Fatal(err)
	}
	rq.Header.Set("Content-Type", "application/grpc")
	rq.Header.Set("TE", "trailers")
	rs, err := transport.RoundTrip(rq)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rs.Body.Close()
	if _, err := io.Copy(io.Discard, rs.Body); err != nil {
		w.t.Errorf("a message of %d bytes was announced: %v", size, err)
	}
}

// helloOf returns a correct handshake of a daemon of this world.
func (w *world) helloOf(region, name string) *rldv1.PeerHello {
	return &rldv1.PeerHello{
		Protocol: link.Version, Shards: worldShards, Rules: w.rules.Hash(),
		SecretFingerprint: link.SecretProof(make([]byte, 16), make([]byte, 32), make([]byte, 32), make([]byte, 16)),
		Member:            &rldv1.PeerMember{Id: 0xbad, Name: name, Region: region, Addr: w.ipIn(region) + ":7947", Build: "test"},
		PublicKey:         make([]byte, 32), Run: make([]byte, 16), Nonce: make([]byte, 32),
	}
}

// double starts a second daemon with the name of another.
func (w *world) double() {
	w.t.Helper()
	holder := w.residents[1]
	d := *holder
	d.cluster, d.ip, d.log = nil, w.ipIn(d.region), &lockedBuffer{}
	d.start()
	w.t.Cleanup(d.kill)
	time.Sleep(30 * time.Second)
	if d.ready.Load() {
		w.t.Errorf("a second %s is ready:\n%s", d.name, d.log)
	}
	if len(d.lines("level=WARN", "name taken", "name="+d.name)) != 1 {
		w.t.Errorf("the second %s does not log why it stays out:\n%s", d.name, d.log)
	}
	for _, r := range w.residents {
		if members := r.all(); len(members) != len(w.residents) {
			w.t.Errorf("%s knows %v", r.name, members)
		}
	}
}

// certify gives all daemons certificates of one authority.
func (w *world) certify() {
	w.t.Helper()
	c := w.certificate()
	w.mend = func(_ *resident, cc *clusterConfig) { cc.streams.Certificates = c }
}

// certificate returns a certificate without names of a new authority.
func (w *world) certificate() *link.Certificates {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	// The certificate is its own authority.
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		w.t.Fatal(err)
	}
	dir := w.t.TempDir()
	certPath, keyPath := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{
		certPath: {Type: "CERTIFICATE", Bytes: der}, keyPath: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	c, err := link.LoadCertificates(certs.Files{Cert: certPath, Key: keyPath, CA: certPath}, slog.Default())
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}
