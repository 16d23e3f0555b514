package xds

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
)

// envoyGateway has the configurations that Envoy Gateway holds its translation
// of rate limits to.
const envoyGateway = "testdata/envoygateway"

// TestEnvoyGateway loads each configuration as the resources of an xDS server
// and as files: both have the rules of the script, and the limits of the
// resources.
func TestEnvoyGateway(t *testing.T) {
	files, err := filepath.Glob(envoyGateway + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	left := make(map[string]bool)
	for _, f := range files {
		left[strings.TrimSuffix(filepath.Base(f), ".yaml")] = true
	}
	configurations := 0
	datadriven.RunTest(t, envoyGateway+"/rules", func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		var name string
		d.ScanArgs(t, "name", &name)
		delete(left, name)
		text, err := os.ReadFile(filepath.Join(envoyGateway, name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var resources []proto.Message
		var asFiles []limits.File
		var want []string
		for i, text := range strings.Split(string(text), "\n---\n") {
			c := resourceOf(t, name, text)
			resources = append(resources, c)
			want = append(want, limitsOf(c.GetDomain(), "", c.GetDescriptors())...)
			asFiles = append(asFiles, limits.File{Name: fmt.Sprintf("%s-%d.yaml", name, i), Data: []byte(text)})
		}
		configurations += len(resources)
		r, err := responseOf("1", "a", resources...)
		if err != nil {
			t.Fatal(err)
		}
		client := newClient()
		reply := client.Receive(r)
		if e := reply.Request.GetErrorDetail(); e != nil {
			return "NACK: " + e.GetMessage()
		}
		got := limits.Describe(client.rules)
		set, found := limits.Parse(asFiles, limits.Options{})
		if err := found.Err(); err != nil {
			return "files: " + err.Error()
		}
		if f := limits.Describe(set); f != got {
			t.Errorf("%s: as files:\n%sas resources:\n%s", name, f, got)
		}
		checkLimits(t, client.rules, want)
		for _, w := range found.Warnings() {
			got += "warning: " + w.Message + "\n"
		}
		return got
	})
	if len(left) > 0 || configurations != 33 {
		t.Errorf("%d configurations, want 33; not in the script: %v", configurations, left)
	}
}

// resourceOf returns the resource that a text of YAML describes.
func resourceOf(t *testing.T, name, text string) *ratelimit.RateLimitConfig {
	t.Helper()
	root, _, fault := yamlpos.Parse(name, []byte(text), yamlpos.Options{MaxBytes: 1 << 20})
	if fault != nil {
		t.Fatal(fault)
	}
	data, err := json.Marshal(plainValue(root))
	if err != nil {
		t.Fatal(err)
	}
	c := &ratelimit.RateLimitConfig{}
	// value_to_metric and share_threshold, false in all, are of files alone.
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, c); err != nil {
		t.Fatal(err)
	}
	return c
}

// plainValue returns a node as encoding/json has it.
func plainValue(n *yamlpos.Node) any {
	switch n.Kind {
	case yamlpos.Map:
		out := make(map[string]any)
		for _, p := range n.Pairs {
			out[p.Key.Text] = plainValue(p.Value)
		}
		return out
	case yamlpos.List:
		out := []any{}
		for _, item := range n.Items {
			out = append(out, plainValue(item))
		}
		return out
	default:
		v, _ := n.Resolve()
		return v
	}
}

// limitsOf returns the limits below descriptors, a line each, in their order.
func limitsOf(domain, path string, all []*ratelimit.RateLimitDescriptor) (out []string) {
	for _, d := range all {
		at := path + "/" + d.GetKey()
		if d.GetValue() != "" {
			at += "=" + d.GetValue()
		}
		if l := d.GetRateLimit(); l != nil {
			out = append(out, fmt.Sprintf("%s%s: %d per %s, shadow %v", domain, at, l.GetRequestsPerUnit(), strings.ToLower(l.GetUnit().String()), d.GetShadowMode()))
		}
		out = append(out, limitsOf(domain, at, d.GetDescriptors())...)
	}
	return out
}

// checkLimits compares the limits of rules with those of resources.
func checkLimits(t *testing.T, set *rules.Set, want []string) {
	t.Helper()
	left := make(map[string]bool)
	for _, w := range want {
		left[w] = true
	}
	for _, r := range set.Rules() {
		if r.Limit == nil {
			continue
		}
		at := r.Domain
		for _, e := range r.Entries {
			at += "/" + e.Key
			if e.Value != "" {
				at += "=" + e.Value
			}
		}
		got := fmt.Sprintf("%s: %d per %s, shadow %v", at, r.Limit.Requests, r.Limit.Unit, r.Limit.Shadow)
		if !left[got] {
			t.Errorf("no resource has the limit %s", got)
		}
		delete(left, got)
	}
	if len(left) > 0 {
		t.Errorf("no rule has the limits %v", left)
	}
}
