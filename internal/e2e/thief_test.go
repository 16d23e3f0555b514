//go:build e2e

package e2e

import (
	"crypto/sha256"
	bigendian "encoding/binary"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/georld/rld/config"
	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/disk/osdir"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/internal/await"
	"github.com/georld/rld/journal"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/wire"
)

// thief is a hostile program with all that one daemon has: its certificate, its
// state folder with its key, and the secret of the cluster. The daemon itself
// has ended, and the thief listens at its address.
type thief struct {
	t        *testing.T
	c        *cluster
	of       *daemon
	secret   []byte
	identity control.Identity
	certs    *link.Certificates
	set      *rules.Set
	hasher   rules.Hasher
	kept     *guise // see peer
}

// thiefShards is the number of shards of a cluster with a thief.
const thiefShards = 4

// steal ends a daemon and takes what it has.
func (c *cluster) steal(t *testing.T, of *daemon) *thief {
	t.Helper()
	of.kill(t)
	s := &thief{t: t, c: c, of: of}
	var err error
	if s.secret, _, err = config.ReadSecret(c.file("secret")); err != nil {
		t.Fatal(err)
	}
	if s.certs, err = link.LoadCertificates(of.certs(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	set, found := limits.Parse([]limits.File{{Name: "limits.yaml", Data: []byte(c.plan.limits)}}, limits.Options{Replicated: true})
	if set == nil {
		t.Fatal(found)
	}
	s.set, s.hasher = set, rules.NewHasher([rules.SecretBytes]byte(s.derive("key hash")[:rules.SecretBytes]))
	s.identity = s.key()
	return s
}

// derive returns what a daemon derives from the secret for a purpose.
func (s *thief) derive(purpose string) []byte {
	sum := sha256.Sum256(append([]byte("rld "+purpose+"\x00"), s.secret...))
	return sum[:]
}

// key reads the key of the daemon from a copy of its state folder.
func (s *thief) key() control.Identity {
	s.t.Helper()
	dir := s.t.TempDir()
	state := s.c.file(s.of.name + "-state")
	_ = os.Remove(filepath.Join(state, "admin.sock")) // of the killed daemon, if any: it cannot be copied
	if err := os.CopyFS(dir, os.DirFS(state)); err != nil {
		s.t.Fatal(err)
	}
	from := replica.Storage{
		Folder: osdir.Dir(dir), RefuseDamage: true, Owner: journal.Owner{
			Cluster: bigendian.BigEndian.Uint64(s.derive("control log of a cluster")), Name: s.of.region + "/" + s.of.name,
		},
	}
	rng := rand.New(rand.NewPCG(1, 2))
	n, log, _, err := from.OpenControl(control.Config{
		Name: s.of.name, Region: s.of.region, Durable: true, Founders: []string{"a-0", "b-0"},
		Language: replica.Language(s.of.region, limits.Options{}), Holders: true, Layouts: true,
	}, control.InsecureSeed(rng), rng)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	return n.Identity()
}

// withNewKey returns the thief with a key that no daemon knows.
func (s *thief) withNewKey() *thief {
	other := *s
	seed := control.InsecureSeed(rand.New(rand.NewPCG(rand.Uint64(), 1)))
	other.identity, other.kept = control.Identity{Key: seed.Key(0), Run: seed.Run()}, nil
	return &other
}

// hello returns the handshake of a new start of the daemon.
func (s *thief) hello() link.Hello { return s.helloAs(s.of.region, s.of.name) }

// helloAs returns the handshake of a new start of a daemon of any name, at the
// address of the thief.
func (s *thief) helloAs(region, name string) link.Hello {
	return link.Hello{
		Member: gossip.Member{
			Peer: gossip.Peer{ID: gossip.DaemonIncarnation(region, name, rand.Uint32()), Name: name, Region: region, Ready: true},
			Addr: s.of.at.peer, Build: "thief",
		},
		Shards: thiefShards, Rules: s.set.Hash(),
	}
}

// guise is the thief with one hello: it has streams to daemons of the cluster,
// and accepts theirs.
type guise struct {
	s     *thief
	hello link.Hello
	host  *link.Host
	begin time.Time
	// toward is the daemon that gets the cells of now.
	toward *daemon

	mu  sync.Mutex // guards met
	met map[string]link.Hello
}

// Frame, Connected, Disconnected and Members make it a link.Handler.
func (*guise) Frame(link.Hello, []byte) error         { return nil }
func (*guise) Disconnected(string, link.Hello, error) {}
func (*guise) Members(link.Hello, []gossip.Member)    {}
func (g *guise) Connected(addr string, h link.Hello) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.met[addr] = h
}

// dials starts a guise that dials daemons and accepts nothing.
func (s *thief) dials(hello link.Hello, to ...*daemon) *guise {
	g := &guise{s: s, hello: hello, begin: time.Now(), met: map[string]link.Hello{}}
	g.host = link.New(link.Config{
		Self: func() link.Hello { return hello }, Identity: func() control.Identity { return s.identity },
		Fingerprints: func() link.Fingerprints { return link.Fingerprints{link.Fingerprint(s.derive("fingerprint")[:16])} },
		Certificates: s.certs, Handler: g,
	})
	var targets []link.Target
	for _, d := range to {
		targets = append(targets, link.Target{Addr: d.at.peer})
	}
	g.host.Targets(targets)
	return g
}

// answers starts a guise that daemons dial, and that dials some.
func (s *thief) answers(hello link.Hello, to ...*daemon) *guise {
	s.t.Helper()
	lis, err := net.Listen("tcp", s.of.at.peer)
	if err != nil {
		s.t.Fatal(err)
	}
	g := s.dials(hello, to...)
	g.host.SendMembers([]gossip.Member{hello.Member})
	go func() { _ = g.host.Serve(lis) }()
	return g
}

// close ends all streams.
func (g *guise) close() {
	g.host.Close()
	if g.s.kept == g {
		g.s.kept = nil
	}
}

// peer returns a guise that the daemons of region a have taken for a peer, the
// same until it is closed.
func (s *thief) peer() *guise {
	s.t.Helper()
	if s.kept != nil {
		return s.kept
	}
	g := s.answers(s.hello(), s.c.in("a")...)
	s.kept = g
	for _, d := range s.c.in("a") {
		await.True(s.t, "the thief is a peer of "+d.name, func() bool {
			var to link.Hello
			g.mu.Lock()
			to, ok := g.met[d.at.peer]
			g.mu.Unlock()
			return ok && slices.ContainsFunc(g.host.Streams(), func(s link.Stream) bool {
				return s.Incoming && s.Hello.Member.ID == to.Member.ID
			})
		})
	}
	return g
}

// to returns the incarnation of a daemon, 0 without a stream to it.
func (g *guise) to(d *daemon) crdt.Incarnation {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.met[d.at.peer].Member.ID
}

// hit returns the key and the rule of a value, and the cell in which its hits
// of now count.
func (s *thief) hit(rule, value string) (node.Hit, gossip.Cell) {
	s.t.Helper()
	call := node.Call{Domain: domain, Descriptors: []rules.Descriptor{{Entries: []rules.Entry{{Key: rule, Value: value}}}}}
	if err := node.NewMatcher(s.set, s.hasher, node.MatcherOptions{}).Resolve(&call); err != nil || call.Hits()[0].Limit == nil {
		s.t.Fatalf("%s=%s: %v, %+v", rule, value, err, call.Hits())
	}
	h, now := call.Hits()[0], time.Now().UnixMilli()
	f := quota.Of(h.Limit)
	c := gossip.Cell{CellID: gossip.CellID{Key: h.Key}}
	c.Window, c.WindowLength, c.Carry = f.Shared(&quota.Cell{Window: now - now%h.Limit.Window()}, now)
	c.Rule = h.Rule.Shared()
	return h, c
}

// message returns a message about cells of one key.
func (g *guise) message(to *daemon, cells ...gossip.Cell) gossip.Message {
	nonce := uint64(time.Since(g.begin) / gossip.NonceUnit)
	m := gossip.Message{
		From: g.hello.Member.ID, To: g.to(to), Shards: thiefShards,
		Header: gossip.Header{Stamp: hlc.New(time.Now().UnixMilli(), 0), Rules: g.hello.Rules, Ready: true, Nonce: nonce},
		Part:   gossip.Part{Hi: nonce, Complete: true, HasViews: true, Cells: cells},
	}
	if len(cells) > 0 {
		slices.SortFunc(cells, func(a, b gossip.Cell) int { return a.Compare(b.CellID) })
		m.Shard = node.ShardOf(cells[0].Key, thiefShards)
	}
	return m
}

// sends sends a message about counts.
func (g *guise) sends(to *daemon, m gossip.Message) {
	if frame, err := wire.Encode(nil, []gossip.Message{m}); err != nil {
		g.s.t.Errorf("no frame: %v", err)
	} else {
		g.host.Send(m.To, frame)
	}
}

// sendsStrict sends a message about strict keys.
func (g *guise) sendsStrict(to *daemon, m sticky.Message) {
	m.From, m.To, m.Number, m.Stamp = g.hello.Member.ID, g.to(to), 1, hlc.New(time.Now().UnixMilli(), 0)
	if frame, err := wire.EncodeStrict(nil, &m); err != nil {
		g.s.t.Errorf("no frame: %v", err)
	} else {
		g.host.Send(m.To, frame)
	}
}
