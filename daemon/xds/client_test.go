package xds

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/georld/rld/config"
	"github.com/georld/rld/disk/osdir"
	"github.com/georld/rld/internal/await"
	"github.com/georld/rld/internal/certs"
	"github.com/georld/rld/internal/certs/certstest"
	"github.com/georld/rld/limits/xds"
)

// minBackoff keeps tests short.
const minBackoff = 100 * time.Millisecond

// TestSnapshotCache follows a real server: the first limits, a change, a set
// that is refused, and the server gone and back with versions that it counts
// anew.
func TestSnapshotCache(t *testing.T) {
	m := newManagement(t)
	m.set("1", perMinute("edge", 5, "user"))
	m.start()
	s := settingsOf(m.addr)
	s.HeadersFile = filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(s.HeadersFile, []byte("# of the gateway\nX-Tenant: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, _ := follow(t, s, nil, nil)
	r.wait("edge/user=5")
	await.True(t, "the ACK", func() bool { return m.acked() == "1" })
	if got := m.headers.Get("x-tenant"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("headers %v", m.headers)
	}

	m.set("2", perMinute("edge", 6, "user", "org"), perMinute("other", 1, "user"))
	r.wait("edge/user=6 edge/org=6 other/user=1")

	bad := perMinute("edge", 7, "user")
	bad.Descriptors[0].RateLimit.Unit = ratelimit.RateLimitUnit_UNKNOWN
	m.set("3", bad)
	await.True(t, "two NACKs", func() bool { return len(m.nacked()) > 1 })
	want := "xds:edge:5:7: descriptors[0].rate_limit.requests_per_unit: rate_limit without a unit; add unit: second"
	if got := m.nacked()[0]; !strings.HasPrefix(got, want) {
		t.Errorf("NACK %q, want %q", got, want)
	}
	if n := len(m.nacked()); n > 3 {
		t.Errorf("%d NACKs: a server that repeats a refused set is not slowed down", n)
	}
	if got := r.inForceNow(); got != "edge/user=6 edge/org=6 other/user=1" {
		t.Errorf("after a refused set: %s", got)
	}
	m.set("4", perMinute("edge", 8, "user"))
	r.wait("edge/user=8")
	if got := r.Stats(); !got.Connected || got.Accepted != 3 || got.Refused < 2 || got.LastAccepted.IsZero() {
		t.Errorf("%+v", got)
	}

	m.grpc.Stop()
	await.True(t, "it is not connected", func() bool { return !r.Stats().Connected })
	if got := r.inForceNow(); got != "edge/user=8" {
		t.Errorf("without the server: %s", got)
	}
	again := newManagement(t)
	again.addr = m.addr
	again.set("4", perMinute("edge", 9, "user"))
	again.start()
	r.wait("edge/user=9")
	if log := r.log.String(); !strings.Contains(log, "refused, the former ones stay in force") || !strings.Contains(log, "cannot be reached") {
		t.Errorf("log %s", log)
	}
}

// TestStored: a client without its server has the last limits of an earlier
// one, and none of a damaged file.
func TestStored(t *testing.T) {
	dir := osdir.Dir(t.TempDir())
	m := newManagement(t)
	m.set("1", perMinute("edge", 5, "user"))
	m.start()
	r, stop := follow(t, settingsOf(m.addr), dir, nil)
	r.wait("edge/user=5")
	await.True(t, "it is stored", func() bool { _, err := dir.Size(File); return err == nil })
	stop()
	m.grpc.Stop()

	r, stop = follow(t, settingsOf(m.addr), dir, nil)
	r.wait("edge/user=5")
	select {
	case <-r.InForce():
	default:
		t.Error("the stored limits do not count as the first ones")
	}
	stop()

	if err := os.WriteFile(dir.Path(File), []byte("rld xds 1\nand so on"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, _ = follow(t, settingsOf(m.addr), dir, nil)
	await.True(t, "it tries to connect", func() bool { return r.Stats().Attempts > 0 })
	if got := r.inForceNow(); got != "" || !strings.Contains(r.log.String(), "are not used") {
		t.Errorf("%s in force, log %s", got, &r.log)
	}
	m.start()
	r.wait("edge/user=5")
	await.True(t, "the file is whole again", func() bool {
		data, err := dir.ReadFile(File)
		if err == nil {
			_, err = xds.Unpack(data)
		}
		return err == nil
	})
}

// TestTLS: the server must prove its name, and gets the client's certificate.
// Files are read for each stream.
func TestTLS(t *testing.T) {
	ca := certstest.New(t, nil)
	dir := t.TempDir()
	f := ca.Write(t, dir, func(c *x509.Certificate) { c.DNSNames = []string{"xds.example"} })
	m := newManagement(t)
	m.set("1", perMinute("edge", 5, "user"))
	own, err := certs.Read(certs.Files{Cert: f.Cert, Key: f.Key, CA: f.CA})
	if err != nil {
		t.Fatal(err)
	}
	m.start(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{own.Cert}, ClientCAs: own.CA, ClientAuth: tls.RequireAndVerifyClientCert,
	})))
	s := settingsOf(m.addr)
	s.TLS = config.ClientTLS{Enabled: true, CAFile: f.CA, CertFile: f.Cert + ".later", KeyFile: f.Key}
	r, stop := follow(t, s, nil, nil)
	await.True(t, "an error that names the file", func() bool {
		return strings.Contains(r.log.String(), "limits.xds.tls.cert_file: ")
	})
	if err := os.Symlink(f.Cert, f.Cert+".later"); err != nil {
		t.Fatal(err)
	}
	await.True(t, "another name is refused", func() bool { return strings.Contains(r.log.String(), "IP SANs") })
	stop()
	if got := r.inForceNow(); got != "" {
		t.Errorf("%s in force of a server without the name", got)
	}
	s.TLS.ServerName = "xds.example"
	r, _ = follow(t, s, nil, nil)
	r.wait("edge/user=5")
}

// TestGone connects to an address where nothing listens, and to one that
// accepts connections and sends nothing.
func TestGone(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := lis.Addr().String()
	lis.Close()
	r, stop := follow(t, settingsOf(addr), nil, nil)
	await.True(t, "it tries again", func() bool { return r.Stats().Attempts > 2 })
	stop()
	if lis, err = net.Listen("tcp", addr); err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	r, stop = follow(t, settingsOf(addr), nil, nil)
	await.True(t, "it tries", func() bool { return r.Stats().Attempts > 0 })
	stop() // it does not wait for the server
}

// stream is a server in memory.
type stream struct {
	ctx  context.Context
	sent chan *discovery.DiscoveryRequest
	give chan *discovery.DiscoveryResponse
}

func (s *stream) Send(r *discovery.DiscoveryRequest) error {
	select {
	case s.sent <- r:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

func (s *stream) Recv() (*discovery.DiscoveryResponse, error) {
	select {
	case r, ok := <-s.give:
		if !ok {
			return nil, errTest
		}
		return r, nil
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

// inMemory returns a dialer whose streams arrive at the channel.
func inMemory() (Dialer, <-chan *stream) {
	all := make(chan *stream, 100)
	return func(ctx context.Context, _ *Options) (Stream, func(), error) {
		s := &stream{ctx: ctx, sent: make(chan *discovery.DiscoveryRequest, 100), give: make(chan *discovery.DiscoveryResponse)}
		all <- s
		return s, func() {}, nil
	}, all
}

func respond(version string, all ...*anypb.Any) *discovery.DiscoveryResponse {
	return &discovery.DiscoveryResponse{VersionInfo: version, Nonce: version, TypeUrl: xds.TypeURL, Resources: all}
}

// TestSilentServer: a server that does not answer a new stream loses it after a
// minute, and one that has answered may be silent for ever.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, streams := inMemory()
		r, stop := follow(t, settingsOf("x"), nil, dial)
		defer stop()
		first := <-streams
		<-first.sent
		time.Sleep(silence - time.Millisecond)
		synctest.Wait()
		if r.Stats().Connected || len(streams) != 0 {
			t.Errorf("%+v, %d streams", r.Stats(), len(streams))
		}
		second := <-streams
		<-second.sent
		second.give <- respond("1")
		<-second.sent
		time.Sleep(24 * time.Hour)
		if n := r.Stats().Attempts; n != 2 || !r.Stats().Connected {
			t.Errorf("%d attempts", n)
		}
		close(second.give)
		<-(<-streams).sent
	})
}

// TestLyingServer: a server that sends garbage and other types without an end
// gets a NACK for each, at a bounded rate, and the limits stay.
func TestLyingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, streams := inMemory()
		r, stop := follow(t, settingsOf("x"), nil, dial)
		defer stop()
		s := <-streams
		<-s.sent
		good, err := anypb.New(perMinute("edge", 5, "user"))
		if err != nil {
			t.Fatal(err)
		}
		s.give <- respond("1", good)
		<-s.sent
		began, version := time.Now(), 0
		for time.Since(began) < time.Second {
			version++
			bad := respond(time.Duration(version).String(), &anypb.Any{TypeUrl: xds.TypeURL, Value: []byte{0xff}})
			if version%2 == 0 {
				bad.TypeUrl = "x"
			}
			s.give <- bad
			if q := <-s.sent; q.GetErrorDetail() == nil || q.GetVersionInfo() != "1" || q.GetTypeUrl() != xds.TypeURL {
				t.Fatalf("%v", q)
			}
		}
		if most := int(time.Second/pace) + 1; version > most {
			t.Errorf("%d responses in a second, want at most %d", version, most)
		}
		if got, fault := r.inForceNow(), r.faultNow(); got != "edge/user=5" || fault == "" {
			t.Errorf("%s in force, fault %q", got, fault)
		}
		// A newer response takes the place of a NACK that waits.
		bad := respond("7", &anypb.Any{TypeUrl: xds.TypeURL, Value: []byte{0xff}})
		s.give <- bad
		<-s.sent
		s.give <- bad
		good, err = anypb.New(perMinute("edge", 6, "user"))
		if err != nil {
			t.Fatal(err)
		}
		s.give <- respond("8", good)
		if q := <-s.sent; q.GetErrorDetail() != nil || q.GetResponseNonce() != "8" {
			t.Errorf("%v, want the ACK", q)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(s.sent) > 0 {
			t.Errorf("%v is sent besides", <-s.sent)
		}
		if fault := r.faultNow(); fault != "" {
			t.Errorf("fault %q after an ACK", fault)
		}
	})
}

// TestBackoff: attempts at a server that is away get rarer, to a bound.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := func(context.Context, *Options) (Stream, func(), error) { return nil, nil, errTest }
		r, stop := follow(t, settingsOf("x"), nil, away)
		defer stop()
		time.Sleep(time.Hour)
		if n := r.Stats().Attempts; n < 2400 || n > 7200 {
			t.Errorf("%d attempts in an hour, want about 3600", n)
		}
		if n := strings.Count(r.log.String(), "cannot be reached"); n > 61 {
			t.Errorf("%d lines in the log", n)
		}
	})
}
