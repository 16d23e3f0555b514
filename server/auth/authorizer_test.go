package auth_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/georld/rld/server/auth"
)

var now = time.Unix(1_800_000_000, 0)

func tokens() auth.Tokens {
	return auth.Tokens{
		{Name: "shop", SHA256: auth.Hash("t-shop"), Domains: []string{"shop"}, Rate: 2},
		{Name: "eyes", SHA256: auth.Hash("t-eyes"), Domains: []string{auth.Everything}, Verb: auth.Read},
	}
}

// reason returns the reason of a refusal, "" for none.
func reason(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var r *auth.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("no refusal: %v", err)
	}
	return r.Reason.String()
}

func TestAdmit(t *testing.T) {
	for _, tt := range []struct {
		name, token, domain string
		verb                auth.Verb
		trusted             bool
		want                string
	}{
		{"right", "t-shop", "shop", auth.Check, false, ""},
		{"a peek of a token that checks", "t-shop", "shop", auth.Read, false, ""},
		{"none", "", "shop", auth.Check, false, "no_token"},
		{"unknown", "t-shop2", "shop", auth.Check, false, "unknown_token"},
		{"the hash", hash, "shop", auth.Check, false, "unknown_token"},
		{"endless", strings.Repeat("x", 1<<20), "shop", auth.Check, false, "unknown_token"},
		{"domain", "t-shop", "cart", auth.Check, false, "domain"},
		{"the domain of all", "t-shop", "*", auth.Check, false, "domain"},
		{"no domain", "t-shop", "", auth.Check, false, "domain"},
		{"read", "t-eyes", "cart", auth.Read, false, ""},
		{"verb", "t-eyes", "cart", auth.Check, false, "verb"},
		{"certificate", "", "shop", auth.Check, true, ""},
		{"certificate with the token of somebody", "theirs", "shop", auth.Check, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := auth.NewAuthorizer(tokens(), nil)
			err := d.Admit(auth.Credentials{Token: tt.token, Trusted: tt.trusted}, auth.Need{Domain: tt.domain, Verb: tt.verb}, now)
			if got := reason(t, err); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if err != nil && tt.token != "" && strings.Contains(err.Error(), tt.token) {
				t.Errorf("the refusal repeats the token: %v", err)
			}
		})
	}
}

// TestWholeHash refuses a token of which only the beginning of the hash is
// known.
func TestWholeHash(t *testing.T) {
	all := tokens()
	all[0].SHA256[31] ^= 1
	d := auth.NewAuthorizer(all, nil)
	if got := reason(t, d.Admit(auth.Credentials{Token: "t-shop"}, auth.Need{Domain: "shop"}, now)); got != "unknown_token" {
		t.Errorf("%q, want unknown_token", got)
	}
}

func TestAdmitAnyDomain(t *testing.T) {
	d := auth.NewAuthorizer(tokens(), nil)
	if err := d.Admit(auth.Credentials{Token: "t-shop"}, auth.Need{AnyDomain: true}, now); err != nil {
		t.Error(err)
	}
	var none *auth.Authorizer
	if err := none.Admit(auth.Credentials{}, auth.Need{}, now); err != nil {
		t.Errorf("without tokens: %v", err)
	}
}

// TestRate makes more calls than a token may. A refused call of another kind
// does not count.
func TestRate(t *testing.T) {
	d := auth.NewAuthorizer(tokens(), nil)
	call := func(domain string, after time.Duration) string {
		return reason(t, d.Admit(auth.Credentials{Token: "t-shop"}, auth.Need{Domain: domain}, now.Add(after)))
	}
	for i, tt := range []struct {
		domain string
		after  time.Duration
		want   string
	}{
		{"shop", 0, ""},
		{"cart", 0, "domain"},
		{"shop", 0, ""},
		{"shop", 0, "rate"},
		{"shop", 499 * time.Millisecond, "rate"},
		{"shop", 500 * time.Millisecond, ""},
		{"shop", 500 * time.Millisecond, "rate"},
	} {
		if got := call(tt.domain, tt.after); got != tt.want {
			t.Errorf("call %d: %q, want %q", i, got, tt.want)
		}
	}
	d.Replace(tokens())
	if got := call("shop", 500*time.Millisecond); got != "rate" {
		t.Errorf("after the same tokens again: %q, want rate", got)
	}
	more := tokens()
	more[0].Rate = 10
	d.Replace(more)
	if got := call("shop", 500*time.Millisecond); got != "" {
		t.Errorf("with a higher rate: %q", got)
	}
}

// TestReplace withdraws a token, and keeps the counts of the others.
func TestReplace(t *testing.T) {
	d := auth.NewAuthorizer(tokens(), nil)
	read := auth.Need{Domain: "a", Verb: auth.Read}
	if err := d.Admit(auth.Credentials{Token: "t-eyes"}, read, now); err != nil {
		t.Fatal(err)
	}
	d.Replace(tokens()[1:])
	if err := d.Admit(auth.Credentials{Token: "t-eyes"}, read, now); err != nil {
		t.Error(err)
	}
	if got := reason(t, d.Admit(auth.Credentials{Token: "t-shop"}, auth.Need{Domain: "shop"}, now)); got != "unknown_token" {
		t.Errorf("a withdrawn token: %q", got)
	}
	if got := d.Stats().Admitted; len(got) != 1 || got[0].Calls != 2 {
		t.Errorf("admitted %v, want 2 of eyes", got)
	}
}

func TestRefusalsAreCountedAndNamedOnce(t *testing.T) {
	var log bytes.Buffer
	d := auth.NewAuthorizer(tokens(), slog.New(slog.NewTextHandler(&log, nil)))
	for range 3 {
		d.Admit(auth.Credentials{Token: "stolen"}, auth.Need{Domain: "shop"}, now)
		d.Admit(auth.Credentials{Token: "t-eyes"}, auth.Need{Domain: "shop"}, now)
	}
	if n := strings.Count(log.String(), "\n"); n != 2 {
		t.Errorf("%d lines, want 2:\n%s", n, log.String())
	}
	if strings.Contains(log.String(), "stolen") || strings.Contains(log.String(), "t-eyes") {
		t.Errorf("a token is in the log:\n%s", log.String())
	}
	for _, c := range d.Stats().Refused {
		want := uint64(0)
		if c.Reason == auth.Unknown || c.Token == "eyes" && c.Reason == auth.WrongVerb {
			want = 3
		}
		if c.Calls != want {
			t.Errorf("%+v, want %d", c, want)
		}
	}
}

func TestFromGRPC(t *testing.T) {
	tcp, unix := &net.TCPAddr{Port: 1}, &net.UnixAddr{Name: "s", Net: "unix"}
	verified := credentials.TLSInfo{State: tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{}}}}}
	for _, tt := range []struct {
		name    string
		fields  []string
		local   net.Addr
		info    credentials.AuthInfo
		token   string
		trusted bool
	}{
		{"nothing", nil, tcp, nil, "", false},
		{"a token", []string{"authorization", "Bearer abc"}, tcp, credentials.TLSInfo{}, "abc", false},
		{"another scheme", []string{"authorization", "Basic abc"}, tcp, nil, "Basic abc", false},
		{"two tokens", []string{"authorization", "Bearer a", "authorization", "Bearer b"}, tcp, nil, "", false},
		{"a certificate", nil, tcp, verified, "", true},
		{"a socket", nil, unix, nil, "", true},
	} {
		ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs(tt.fields...))
		ctx = peer.NewContext(ctx, &peer.Peer{Addr: tcp, LocalAddr: tt.local, AuthInfo: tt.info})
		if c := auth.FromGRPC(ctx); c.Token != tt.token || c.Trusted != tt.trusted {
			t.Errorf("%s: %+v", tt.name, c)
		}
	}
	if c := auth.FromGRPC(context.Background()); c.Trusted {
		t.Error("a call without a peer is trusted")
	}
}

func TestFromHTTP(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	if c := auth.FromHTTP(r); c.Trusted || c.Token != "" || c.From.String() != r.RemoteAddr {
		t.Errorf("%+v", c)
	}
	r.Header.Set("Authorization", "bearer  abc")
	if c := auth.FromHTTP(r); c.Token != "abc" {
		t.Errorf("%+v", c)
	}
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}
	if c := auth.FromHTTP(r); c.Trusted {
		t.Error("a certificate that nobody verified is trusted")
	}
	r.TLS.VerifiedChains = [][]*x509.Certificate{{{}}}
	if c := auth.FromHTTP(r); !c.Trusted {
		t.Error("a verified certificate is not trusted")
	}
}

// TestNew: all 256 bits of a token are random, and its hash is the SHA-256 of
// all of it, as of sha256sum.
func TestNew(t *testing.T) {
	var ones, zeros [32]byte // the bits that are 1 or 0 in some token
	for range 100 {
		token, sum := auth.New()
		text, ok := strings.CutPrefix(token, "rld_")
		random, err := base64.RawURLEncoding.DecodeString(text)
		if !ok || err != nil || len(random) != len(ones) || sum != sha256.Sum256([]byte(token)) {
			t.Fatalf("%q, %x, error %v", token, sum, err)
		}
		for i, b := range random {
			ones[i] |= b
			zeros[i] |= ^b
		}
	}
	all := bytes.Repeat([]byte{0xff}, len(ones))
	if !bytes.Equal(ones[:], all) || !bytes.Equal(zeros[:], all) {
		t.Errorf("bits of tokens that do not change: ones %x, zeros %x", ones, zeros)
	}
}

// TestAdmitDoesNotAllocate holds the decision path to its promise.
func TestAdmitDoesNotAllocate(t *testing.T) {
	token, sum := auth.New()
	d := auth.NewAuthorizer(auth.Tokens{{Name: "a", SHA256: sum, Domains: []string{"shop"}, Rate: 1e6}}, nil)
	c, n := auth.Credentials{Token: token}, auth.Need{Domain: "shop"}
	allocs := testing.AllocsPerRun(100, func() {
		if err := d.Admit(c, n, now); err != nil {
			t.Error(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func BenchmarkAdmit(b *testing.B) {
	token, sum := auth.New()
	d := auth.NewAuthorizer(auth.Tokens{{Name: "a", SHA256: sum, Domains: []string{"shop"}, Rate: 1e6}}, nil)
	c, n := auth.Credentials{Token: token}, auth.Need{Domain: "shop"}
	b.ReportAllocs()
	for b.Loop() {
		d.Admit(c, n, time.Now())
	}
}
