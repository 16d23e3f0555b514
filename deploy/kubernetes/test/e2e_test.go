//go:build linux

package kubernetes_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// cluster holds real daemons that are started with the manifests.
type cluster struct {
	*node
	t        *testing.T
	overlays map[string]*overlay
	network  string // the first three numbers of addresses
	given    int    // addresses
	pods     []*process
}

// newCluster returns a cluster without pods. Each pod gets an address of its
// own in the loopback network, so that all have the ports of the manifests.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{node: newNode(t), t: t, overlays: make(map[string]*overlay)}
	c.network = fmt.Sprintf("127.%d.%d", 1+rand.IntN(254), rand.IntN(256))
	for _, region := range regions(t) {
		c.overlays[region] = c.load(region, "")
	}
	return c
}

// load loads an overlay, and makes the window of its limit so long that it does
// not end within a test.
func (c *cluster) load(region, more string) *overlay {
	c.t.Helper()
	o := load(c.t, region, more)
	for _, m := range o.configs {
		if text, ok := m.Data["limits.yaml"]; ok {
			m.Data["limits.yaml"] = longWindow(text)
		}
	}
	return o
}

func longWindow(text string) string { return strings.Replace(text, "unit: minute", "unit: year", 1) }

func (c *cluster) address() string {
	c.given++
	return fmt.Sprintf("%s.%d", c.network, c.given)
}

// begin starts so many durable daemons of each region at once, for the first
// time, and waits until they are ready.
func (c *cluster) begin(durable map[string]int) {
	c.t.Helper()
	type planned struct{ region, name, ip string }
	var plan []planned
	seeds := make(map[string][]string)
	for _, region := range regions(c.t) {
		for i := range durable[region] {
			p := planned{region, fmt.Sprintf("%s-%d", region, i), c.address()}
			plan = append(plan, p)
			seeds[region] = append(seeds[region], p.ip+":7946")
			c.names[p.name+".rld.example:"] = p.ip + ":"
		}
	}
	for _, p := range plan {
		first := c.load(p.region, "")
		c.resolve(seeds[p.region])
		c.pods = append(c.pods, c.start(first, first.daemons()[0], p.name, p.ip))
	}
	for _, p := range c.pods {
		p.ready(c.t)
	}
}

// resolve sets the addresses of the headless service.
func (c *cluster) resolve(seeds []string) { c.names["rld-peers:7946"] = strings.Join(seeds, ",") }

var initCommand = regexp.MustCompile(`(?m)^kubectl exec -n rld (\S+) -- rld (cluster init .*)$`)

// init runs the command of README.md that begins the cluster, in the pod that
// README.md names and then in another one. It returns both outputs.
func (c *cluster) init(other string) (first, again string) {
	c.t.Helper()
	line := initCommand.FindStringSubmatch(readFile(c.t, "../README.md"))
	if line == nil {
		c.t.Fatal("README.md has no command that begins the cluster")
	}
	var outputs []string
	for _, name := range []string{line[1], other} {
		p := c.pods[slices.IndexFunc(c.pods, func(p *process) bool { return p.pod == name })]
		out, err := p.rld(strings.Fields(line[2])...).CombinedOutput()
		if err != nil {
			c.t.Fatalf("%s in %s: %v\n%s", line[2], name, err, out)
		}
		outputs = append(outputs, string(out))
	}
	return outputs[0], outputs[1]
}

// seeds returns the addresses of the durable daemons of a region.
func (c *cluster) seeds(region string) (out []string) {
	for _, p := range c.pods {
		if strings.HasPrefix(p.pod, region) && len(p.template.claims) > 0 {
			out = append(out, p.ip+":7946")
		}
	}
	return out
}

// add starts a pod of a region's daemons, durable or diskless, at a new
// address.
func (c *cluster) add(region string, durable bool, name string) *process {
	c.t.Helper()
	c.resolve(c.seeds(region))
	o := c.overlays[region]
	template := o.daemons()[1]
	if durable {
		template = o.daemons()[0]
	}
	p := c.start(o, template, name, c.address())
	c.pods = append(c.pods, p)
	p.ready(c.t)
	return p
}

// remove stops pods at once, as the kubelet does.
func (c *cluster) remove(pods ...*process) {
	c.t.Helper()
	var all sync.WaitGroup
	for _, p := range pods {
		all.Go(func() { p.delete(c.t) })
	}
	all.Wait()
	c.pods = slices.DeleteFunc(slices.Clone(c.pods), func(p *process) bool { return slices.Contains(pods, p) })
}

// whole waits until each daemon lists all of them, ready.
func (c *cluster) whole() {
	c.t.Helper()
	var want []string
	for _, p := range c.pods {
		want = append(want, p.pod)
	}
	slices.Sort(want)
	for _, p := range c.pods {
		p.await(c.t, 20*time.Second, func() error {
			got, err := p.members()
			if err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("lists %q, want %q", got, want)
			}
			return err
		})
	}
}

// members returns the names of the ready daemons that a daemon lists, sorted.
// It asks as kubectl exec POD -- rld daemon list does.
func (p *process) members() (names []string, err error) {
	out, err := p.rld("daemon", "list", "-o", "json").Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderr(err))
	}
	var answer struct {
		Members []struct {
			Name  string
			Ready bool
		}
	}
	err = json.Unmarshal(out, &answer)
	for _, m := range answer.Members {
		if m.Ready {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return names, err
}

// begun waits until each daemon has the record of the cluster, also diskless
// ones.
func (c *cluster) begun() {
	c.t.Helper()
	for _, p := range c.pods {
		p.await(c.t, 10*time.Second, func() error {
			out, err := p.rld("cluster", "status").Output()
			if err == nil && !strings.Contains(string(out), " began at ") {
				err = fmt.Errorf("has not begun:\n%s", out)
			}
			return err
		})
	}
}

// holdRights waits until each daemon holds rights, also diskless ones.
func (c *cluster) holdRights() {
	c.t.Helper()
	for _, p := range c.pods {
		p.await(c.t, time.Minute, func() error {
			r, err := http.Get("http://" + p.ip + ":6071/readyz?verbose")
			if err != nil {
				return err
			}
			defer r.Body.Close()
			data, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
			if err == nil && !strings.Contains(string(data), "it holds rights") {
				err = fmt.Errorf("holds no rights:\n%s", data)
			}
			return err
		})
	}
}

// check asks a daemon over HTTP, as a gateway does, and returns the remaining
// hits of the limit of base/limits.yaml.
func (p *process) check(query string) (remaining int, err error) {
	r, err := http.Get("http://" + p.ip + ":8080/v1/check?domain=edge&tier=free&" + query)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	data, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return 0, err
	}
	var answer struct {
		Statuses []struct{ Remaining int }
	}
	err = json.Unmarshal(data, &answer)
	if err != nil || r.StatusCode != http.StatusOK || len(answer.Statuses) != 1 {
		return 0, fmt.Errorf("%s, %v: %s", r.Status, err, data)
	}
	return answer.Statuses[0].Remaining, nil
}

// left waits until each daemon knows the remaining hits of a user.
func (c *cluster) left(user string, want int) {
	c.t.Helper()
	for _, p := range c.pods {
		p.await(c.t, 10*time.Second, func() error {
			got, err := p.check("peek=true&user_id=" + user)
			if err == nil && got != want {
				err = fmt.Errorf("%d hits left, want %d", got, want)
			}
			return err
		})
	}
}

// The cluster starts from the manifests, answers gateways, is rolled as
// Kubernetes rolls it, takes new limits from its ConfigMap, and stops.
func TestCluster(t *testing.T) {
	c := newCluster(t)
	c.begin(map[string]int{"us-east-1": 3, "eu-west-1": 1, "ap-south-1": 1})
	edge := c.add("us-east-1", false, "us-east-1-edge-a1b2c")
	c.whole()

	if first, again := c.init("eu-west-1-0"); !strings.Contains(first, " began at ") || again != first {
		t.Errorf("rld cluster init prints %q and then %q, want the same beginning", first, again)
	}
	c.begun()
	c.holdRights()

	// Above half of the limit, all daemons are informed.
	if got, err := edge.check("user_id=ann&hits=400"); err != nil || got != 200 {
		t.Fatalf("%d hits left, %v; want 200", got, err)
	}
	c.left("ann", 200)

	// A roll. A durable pod comes back under its name, with its disk and
	// another address. A diskless one is replaced by one of another name, which
	// starts before.
	c.add("us-east-1", false, "us-east-1-edge-d3e4f")
	c.remove(edge, c.pods[slices.IndexFunc(c.pods, func(p *process) bool { return p.pod == "us-east-1-1" })])
	c.add("us-east-1", true, "us-east-1-1")
	c.whole()
	c.holdRights()
	c.left("ann", 200)

	// Limits change in the ConfigMap, without a restart.
	text := strings.Replace(longWindow(readFile(t, "../base/limits.yaml")), ": 600", ": 700", 1)
	for _, p := range c.pods {
		c.publish(p.limits, map[string][]byte{"limits.yaml": []byte(text)}, 0o644, 0)
	}
	c.left("ann", 300)

	// Evictions of several at once. Founders are not among them: a voter which
	// nobody can follow takes 20 s to leave.
	c.remove(slices.DeleteFunc(slices.Clone(c.pods), func(p *process) bool { return strings.HasSuffix(p.pod, "-0") })...)
}
