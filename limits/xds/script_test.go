package xds

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/datadriven"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
)

// client is a subscription whose sets are compiled as by a daemon.
type client struct {
	*Subscription
	rules *rules.Set
}

func newClient() *client {
	c := &client{}
	c.Subscription = New(Config{
		NodeID: "n", Metadata: map[string]string{"cluster": "eu"}, BackoffMin: time.Second, BackoffMax: 10 * time.Second,
		Apply: c.apply, Random: rand.New(rand.NewPCG(1, 2)),
	})
	return c
}

func (c *client) apply(s *Set) error {
	set, found := limits.Parse(s.Files, limits.Options{})
	s.Explain(found)
	if err := found.Err(); err != nil {
		return err
	}
	c.rules = set
	return nil
}

// responseOf returns a response with the resources that texts describe.
func responseOf(version, nonce string, resources ...proto.Message) (*discovery.DiscoveryResponse, error) {
	r := &discovery.DiscoveryResponse{VersionInfo: version, Nonce: nonce, TypeUrl: TypeURL}
	for _, m := range resources {
		a, err := anypb.New(m)
		if err != nil {
			return nil, err
		}
		r.Resources = append(r.Resources, a)
	}
	return r, nil
}

// response reads the response of a command: resources as text, between lines
// of ---.
func response(t *testing.T, d *datadriven.TestData) (*discovery.DiscoveryResponse, error) {
	t.Helper()
	var all []proto.Message
	for text := range strings.SplitSeq(d.Input, "---\n") {
		c := &ratelimit.RateLimitConfig{}
		if err := prototext.Unmarshal([]byte(text), c); err != nil {
			return nil, err
		}
		if strings.TrimSpace(text) != "" {
			all = append(all, c)
		}
	}
	var version, nonce string
	d.MaybeScanArgs(t, "version", &version)
	d.MaybeScanArgs(t, "nonce", &nonce)
	r, err := responseOf(version, nonce, all...)
	if err != nil {
		return nil, err
	}
	d.MaybeScanArgs(t, "type", &r.TypeUrl)
	if d.HasArg("garbage") {
		r.Resources[len(r.Resources)-1].Value = []byte{0x0a, 0xff}
	}
	if d.HasArg("other") {
		r.Resources[0].TypeUrl = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	}
	return r, nil
}

func requestText(r *discovery.DiscoveryRequest) string {
	text := fmt.Sprintf("node=%s type=%s version=%q nonce=%q\n", r.GetNode().GetId(), r.GetTypeUrl(), r.GetVersionInfo(), r.GetResponseNonce())
	if e := r.GetErrorDetail(); e != nil {
		text += fmt.Sprintf("NACK %d: %s\n", e.GetCode(), e.GetMessage())
	}
	return text
}

// TestScripts plays conversations with servers.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		c := newClient()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			switch d.Cmd {
			case "begin":
				return requestText(c.Begin())
			case "end":
				return fmt.Sprintln("retry in", c.End().Round(time.Millisecond))
			case "receive":
				r, err := response(t, d)
				if err != nil {
					t.Fatal(err)
				}
				reply := c.Receive(r)
				text := requestText(reply.Request)
				if reply.Wait > 0 {
					text = fmt.Sprintln("after", reply.Wait.Round(time.Millisecond)) + text
				}
				return text + inForce(c, reply.Set)
			case "overlay":
				o, err := ParseOverlay("overlay.yaml", []byte(d.Input))
				if err != nil {
					return err.Error() + "\n"
				}
				if err := c.Overlay(o); err != nil {
					return fmt.Sprintf("refused: %v\n", err)
				}
				text := inForce(c, c.Set())
				if s := c.Set(); s != nil {
					text += strings.Join(s.Unused, "\n")
				}
				return text
			case "restore":
				r, err := response(t, d)
				if err != nil {
					t.Fatal(err)
				}
				return fmt.Sprintln("error:", c.Restore(r)) + inForce(c, c.Set())
			}
			d.Fatalf(t, "no such command")
			return ""
		})
	})
}

// inForce describes a new set and the rules in force.
func inForce(c *client, s *Set) string {
	var b strings.Builder
	if s != nil {
		fmt.Fprintf(&b, "applied: %d files\n", len(s.Files))
		for _, f := range s.Files {
			fmt.Fprintf(&b, "%s\n", f.Name)
			for line := range strings.Lines(string(f.Data)) {
				b.WriteString("  " + line)
			}
		}
	}
	if c.rules != nil {
		fmt.Fprintf(&b, "in force: %d rules\n", len(c.rules.Rules()))
	}
	return b.String()
}

// TestPack damages stored responses.
func TestPack(t *testing.T) {
	r, err := responseOf("7", "n", &ratelimit.RateLimitConfig{Name: "a", Domain: "a"})
	if err != nil {
		t.Fatal(err)
	}
	data, err := Pack(r)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Unpack(data); err != nil || !proto.Equal(got, r) {
		t.Errorf("%v, %v, want %v", got, err, r)
	}
	for i := range data {
		bad := append([]byte(nil), data...)
		bad[i] ^= 1
		if _, err := Unpack(bad); err == nil {
			t.Errorf("byte %d is wrong, and nothing is found", i)
		}
		if _, err := Unpack(data[:i]); err == nil {
			t.Errorf("%d bytes are read", i)
		}
	}
}

// FuzzReceive: no response causes a panic, a refused one leaves the former
// limits, and the file of an accepted one is what it was made of.
func FuzzReceive(f *testing.F) {
	r, err := responseOf("1", "n", &ratelimit.RateLimitConfig{Name: "a", Domain: "a", Descriptors: []*ratelimit.RateLimitDescriptor{
		{Key: "k", Value: "v", RateLimit: &ratelimit.RateLimitPolicy{Unit: 1, RequestsPerUnit: 3, Replaces: []*ratelimit.RateLimitReplace{{Name: "x"}}}},
	}})
	if err != nil {
		f.Fatal(err)
	}
	data, err := proto.Marshal(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &discovery.DiscoveryResponse{}
		if proto.Unmarshal(data, r) != nil {
			return
		}
		c := newClient()
		c.Begin()
		reply := c.Receive(r)
		if (reply.Fault == "") != (reply.Request.GetErrorDetail() == nil) || (reply.Fault == "") != (c.rules != nil) {
			t.Fatalf("fault %q, request %v, rules %v", reply.Fault, reply.Request, c.rules)
		}
		if n := proto.Size(reply.Request); n > 3*maxVersionBytes {
			t.Fatalf("a request of %d bytes", n)
		}
		was := c.rules
		bad := &discovery.DiscoveryResponse{TypeUrl: TypeURL, Resources: []*anypb.Any{{TypeUrl: TypeURL, Value: []byte{0xff}}}}
		if again := c.Receive(bad); again.Fault == "" || c.rules != was {
			t.Fatal("a refused response changed the limits")
		}
	})
}

// Texts of resources come through YAML unchanged.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "a", "yes", "*", `"\`, "a: b # c", "é\u2028\ufeff", "\U000e0001", "0x10", " x "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return // no resource has it
		}
		file, err := fileOf(&ratelimit.RateLimitConfig{Domain: "d", Descriptors: []*ratelimit.RateLimitDescriptor{{Key: "k", Value: s}}}, nil, false)
		if err != nil {
			return
		}
		set, found := limits.Parse([]limits.File{{Name: "f", Data: file.text}}, limits.Options{})
		if found.Err() != nil {
			return // with control characters
		}
		got := set.Rules()[0].Path
		want := "k"
		if s != "" {
			want = "k=" + s
		}
		if got != want {
			t.Fatalf("%q became %q", s, got)
		}
	})
}

// TestApplyFails: without limits in force the first set may be refused, too.
func TestApplyFails(t *testing.T) {
	c := New(Config{NodeID: "n", Random: rand.New(rand.NewPCG(1, 2)), Apply: func(*Set) error { return errors.New("no room") }})
	r, err := responseOf("1", "a")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Receive(r); got.Fault != "no room" || got.Set != nil || c.Set() != nil {
		t.Errorf("%+v", got)
	}
}
