//go:build linux

package kubernetes_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// settings are those of a daemon by name.
type settings map[string]struct{ Value string }

// printed returns the settings of a container as rld config print has them.
func printed(t *testing.T, c *container) settings {
	t.Helper()
	args := append([]string{"config", "print", "--effective", "--show-origin", "-o", "json"}, c.args[2:]...)
	out, err := c.rld(args...).Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", c.pod, err, stderr(err))
	}
	var s map[string]struct{ Value json.RawMessage }
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatalf("%s: %v\n%s", c.pod, err, out)
	}
	all := make(settings)
	for name, v := range s {
		text := string(v.Value)
		if unquoted, err := strconv.Unquote(text); err == nil {
			text = unquoted
		}
		all[name] = struct{ Value string }{text}
	}
	return all
}

func stderr(err error) string {
	if e, ok := err.(*exec.ExitError); ok {
		return string(e.Stderr)
	}
	return ""
}

// port returns the port of a listener.
func (s settings) port(t *testing.T, name string) int32 {
	t.Helper()
	_, text, err := net.SplitHostPort(s[name].Value)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return int32(port)
}

// A daemon accepts the arguments and the environment of each container with
// the files of its volumes, and the manifests agree with the settings.
func TestSettings(t *testing.T) {
	n := newNode(t)
	for _, region := range regions(t) {
		o := load(t, region, "")
		for i, p := range o.daemons() {
			name := fmt.Sprintf("%s-%d", region, i)
			if len(p.claims) == 0 {
				name = region + "-edge-a1b2c"
			}
			c := n.container(o, p, name, fmt.Sprintf("127.0.0.%d", 2+i))
			if c.args[1] != "serve" {
				t.Fatalf("%s: the arguments are %q, want serve", p.owner, c.args)
			}
			checkAccepted(t, c)
			s := printed(t, c)
			checkPorts(t, p, s)
			drain, err := time.ParseDuration(s["drain"].Value)
			if err != nil {
				t.Fatal(err)
			}
			if before, grace := stop(p); before+drain+leave > grace {
				t.Errorf("%s: preStop %v, drain %v and %v to leave do not fit into the grace period %v", p.owner, before, drain, leave, grace)
			}
			if got := s["region"].Value; got != region {
				t.Errorf("%s: region is %s", p.owner, got)
			}
			if got := s["name"].Value; got != name {
				t.Errorf("%s: name is %s, want that of the pod", p.owner, got)
			}
		}
		checkNames(t, o, n)
	}
}

// expected are the warnings about settings that the manifests leave to their
// users: networks of pods, the authority, and volumes that belong to a group.
var expected = []string{
	"answers other machines in plain text", "names no daemon", "no cidrs", "unless the group is that of this daemon alone",
}

// checkAccepted runs rld config check.
func checkAccepted(t *testing.T, c *container) {
	t.Helper()
	out, err := c.rld(append([]string{"config", "check"}, c.args[2:]...)...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", c.pod, err, out)
	}
	for line := range strings.Lines(string(out)) {
		known := slices.ContainsFunc(expected, func(e string) bool { return strings.Contains(line, e) })
		if strings.HasPrefix(line, "warning: ") && !known {
			t.Errorf("%s: %s", c.pod, line)
		}
	}
}

// checkPorts compares the ports of a container with the listeners.
func checkPorts(t *testing.T, p pod, s settings) {
	t.Helper()
	for _, port := range p.template.Spec.Containers[0].Ports {
		if got := s.port(t, port.Name+".addr"); got != port.ContainerPort {
			t.Errorf("%s: port %s is %d, and the daemon listens at %d", p.owner, port.Name, port.ContainerPort, got)
		}
	}
	for _, name := range []string{"peer.advertise", "swim.advertise"} {
		if got, want := s.port(t, name), s.port(t, strings.Replace(name, "advertise", "addr", 1)); got != want {
			t.Errorf("%s: %s has port %d, want %d", p.owner, name, got, want)
		}
	}
}

// checkNames compares the names of the durable pods with those in the settings.
func checkNames(t *testing.T, o *overlay, n *node) {
	t.Helper()
	pods := o.durableNames()
	s := printed(t, n.container(o, o.daemons()[0], pods[0], "127.0.0.2"))
	if voters := s.list(t, "strict.replicas"); !slices.Equal(voters, pods) {
		t.Errorf("%s: strict.replicas is %q, and the pods are %q", o.region, voters, pods)
	}
	var all []string
	for _, region := range regions(t) {
		all = append(all, load(t, region, "").durableNames()...)
	}
	founders := s.list(t, "cluster.founders")
	for _, f := range founders {
		if !slices.Contains(all, f) {
			t.Errorf("%s: founder %s is none of the durable pods %q", o.region, f, all)
		}
	}
	if len(founders)%2 == 0 {
		t.Errorf("%s: %d founders, want an odd number", o.region, len(founders))
	}
}

// durableNames returns the names of the durable pods.
func (o *overlay) durableNames() (names []string) {
	for _, s := range o.durable {
		for i := range *s.Spec.Replicas {
			names = append(names, fmt.Sprintf("%s-%d", s.Name, i))
		}
	}
	return names
}

// list returns a setting that is a list.
func (s settings) list(t *testing.T, name string) (out []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(s[name].Value), &out); err != nil {
		t.Fatalf("%s: %v: %s", name, err, s[name].Value)
	}
	return out
}
