package link

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/valid"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/wire"
)

// Version is the version of the stream protocol. Both ends must use it.
const Version = 5

// Bounds of a hello and of a member, in bytes.
const (
	maxHello = 4 << 10
	maxName  = 128 // of a daemon, and of a region
	maxAddr  = 262 // a DNS name of 255 bytes, a colon and a port
	maxBuild = 128
)

// Hello is the announcement of a daemon at the handshake.
type Hello struct {
	Member gossip.Member
	// Shards is the number of shards of its keys, 1 to 64, equal in the whole
	// cluster.
	Shards int
	// Rules is the hash of its rules.
	Rules uint64
	// Daemon and Run are its id and its run. The Host sets its own by
	// Config.Identity, and those of a peer once they are proven.
	Daemon control.ID
	Run    control.Run
}

// String returns the daemon's name for logs.
func (h Hello) String() string {
	return fmt.Sprintf("%s/%s (%s)", h.Member.Region, h.Member.Name, h.Member.Addr)
}

// greeting is the content of a PeerHello.
type greeting struct {
	protocol uint32
	secrets  Fingerprints // which are not sent
	proofs   [][]byte     // of secrets, in a greeting that was received
	hello    Hello
	public   []byte // the key, whose id is that of hello
	nonce    []byte
}

// encode returns the bytes of g.
func (g *greeting) encode() ([]byte, error) {
	proofs := g.proofs
	for _, secret := range g.secrets {
		proofs = append(proofs, SecretProof(secret[:], g.nonce, g.public, g.hello.Run[:]))
	}
	proofs = append(proofs, nil, nil)
	return proto.Marshal(&rldv1.PeerHello{
		Protocol:              g.protocol,
		SecretFingerprint:     proofs[0],
		Member:                protoMember(&g.hello.Member),
		Shards:                uint32(g.hello.Shards),
		Rules:                 g.hello.Rules,
		PublicKey:             g.public,
		Run:                   g.hello.Run[:],
		Nonce:                 g.nonce,
		NextSecretFingerprint: proofs[1],
	})
}

// ownHello is the hello of this daemon in one handshake.
type ownHello struct {
	Hello
	secrets Fingerprints
	body    []byte
	key     *control.Key
}

// greet makes the hello for a handshake.
func (h *Host) greet() (ownHello, error) {
	is := h.config.Identity()
	own := greeting{
		protocol: Version, secrets: h.config.Fingerprints(), hello: h.config.Self(),
		public: is.Key.Public(), nonce: make([]byte, nonceSize),
	}
	own.hello.Daemon, own.hello.Run = is.Key.ID(), is.Run
	if _, err := rand.Read(own.nonce); err != nil {
		return ownHello{}, err
	}
	body, err := own.encode()
	return ownHello{own.hello, own.secrets, body, is.Key}, err
}

// decodeGreeting decodes the hello of a peer. Of a hello of another version it
// sets only the version.
func decodeGreeting(b []byte) (greeting, error) {
	if len(b) > maxHello {
		return greeting{}, fmt.Errorf("hello of %d bytes, want at most %d", len(b), maxHello)
	}
	protocol, err := protocolOf(b)
	if err != nil || protocol != Version {
		return greeting{protocol: protocol}, err
	}
	var p rldv1.PeerHello
	if err := proto.Unmarshal(b, &p); err != nil {
		return greeting{}, fmt.Errorf("hello that is no PeerHello: %w", err)
	}
	g := greeting{
		protocol: protocol,
		proofs:   [][]byte{p.GetSecretFingerprint()},
		hello:    Hello{Member: memberOf(p.GetMember()), Shards: int(p.GetShards()), Rules: p.GetRules()},
		public:   p.GetPublicKey(),
		nonce:    p.GetNonce(),
	}
	if len(g.public) != ed25519.PublicKeySize || len(p.GetRun()) != len(g.hello.Run) || len(g.nonce) != nonceSize {
		return greeting{}, fmt.Errorf("hello with a key of %d, a run of %d and a nonce of %d bytes, want %d, %d and %d",
			len(g.public), len(p.GetRun()), len(g.nonce), ed25519.PublicKeySize, len(g.hello.Run), nonceSize)
	}
	g.hello.Daemon, g.hello.Run = control.IDOf(g.public), control.Run(p.GetRun())
	if next := p.GetNextSecretFingerprint(); len(next) > 0 {
		g.proofs = append(g.proofs, next)
	}
	for _, proof := range g.proofs {
		if len(proof) != fingerprintSize {
			return greeting{}, fmt.Errorf("hello with a fingerprint of %d bytes, want %d", len(proof), fingerprintSize)
		}
	}
	if g.hello.Shards < 1 || g.hello.Shards > wire.MaxShards {
		return greeting{}, fmt.Errorf("hello of %d shards, want 1 to %d", p.GetShards(), wire.MaxShards)
	}
	if err := checkMember(&g.hello.Member); err != nil {
		return greeting{}, fmt.Errorf("hello: %w", err)
	}
	return g, nil
}

// protocolOf returns the version of a hello, independent of its other fields.
func protocolOf(b []byte) (uint32, error) {
	protocol := uint64(0)
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return 0, fmt.Errorf("hello that is no PeerHello: %w", protowire.ParseError(n))
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			return 0, fmt.Errorf("hello that is no PeerHello: %w", protowire.ParseError(size))
		}
		if num == 1 && typ == protowire.VarintType {
			protocol, _ = protowire.ConsumeVarint(b[n:])
		}
		b = b[n+size:]
	}
	if protocol == 0 || protocol > 1<<31 {
		return 0, fmt.Errorf("hello that names no version of the protocol")
	}
	return uint32(protocol), nil
}

func protoMember(m *gossip.Member) *rldv1.PeerMember {
	return &rldv1.PeerMember{
		Id: uint64(m.ID), Name: m.Name, Region: m.Region, Ready: m.Ready, Addr: m.Addr, Build: m.Build,
	}
}

func memberOf(p *rldv1.PeerMember) gossip.Member {
	return gossip.Member{
		Peer: gossip.Peer{
			ID: crdt.Incarnation(p.GetId()), Name: p.GetName(), Region: p.GetRegion(), Ready: p.GetReady(),
		},
		Addr: p.GetAddr(), Build: p.GetBuild(),
	}
}

// checkMember returns an error for a member that a peer may not send.
func checkMember(m *gossip.Member) error {
	if m.ID == 0 {
		return fmt.Errorf("member without an id")
	}
	if err := valid.Texts(
		valid.Text{Name: "name", Value: m.Name, Least: 1, Most: maxName},
		valid.Text{Name: "region", Value: m.Region, Least: 1, Most: maxName},
		valid.Text{Name: "build", Value: m.Build, Most: maxBuild},
		valid.Text{Name: "address", Value: m.Addr, Least: 1, Most: maxAddr},
	); err != nil {
		return err
	}
	return valid.Address("address", m.Addr)
}
