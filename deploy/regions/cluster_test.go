package regions_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/georld/rld/config"
	"github.com/georld/rld/daemon"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const limit = 1000

var limits = fmt.Sprintf(`
domain: shop
descriptors:
  - key: user
    rate_limit: {unit: year, requests_per_unit: %d, algorithm: sliding_window}
`, limit)

// cluster is daemons on loopback, made from the files.
type cluster struct {
	t        *testing.T
	material materials
	flags    map[string]string       // for all daemons
	peers    map[string]net.Listener // of the first daemon of each region
	daemons  []*running
}

// running is a daemon under test.
type running struct {
	*daemon.Handle
	Region, Name string
	stop         context.CancelFunc
	done         chan error
	log          *lockedBuffer
}

// One daemon of each region, as its file has it but for addresses and paths,
// and then one more of each that finds its region by a seed: they are one
// cluster, and a hit in one region is counted in all.
func TestCluster(t *testing.T) {
	paths, err := files(".")
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, paths)
	for _, region := range slices.Sorted(maps.Keys(paths)) {
		c.start(region+"-0", paths[region], nil, c.peers[region])
	}
	c.whole()
	c.hit(c.daemons[0], "ann", 7)
	c.left("ann", limit-7)

	first := slices.Clone(c.daemons)
	for _, d := range first {
		c.start(d.Region+"-1", paths[d.Region], []string{d.Swim()}, listen(t))
	}
	c.whole()
	c.left("ann", limit-7) // known to daemons that start later, too
	for i, d := range c.daemons {
		c.hit(d, "bob", 10+i)
	}
	c.left("bob", limit-10-11-12-13-14-15)

	c.stop(c.daemons[len(first):])
	c.left("bob", limit-10-11-12-13-14-15) // and to the others
	c.stop(first)
}

func newCluster(t *testing.T, paths map[string]string) *cluster {
	c := &cluster{t: t, material: material(t), flags: make(map[string]string), peers: make(map[string]net.Listener)}
	for _, f := range []string{"grpc-addr", "http-addr", "admin-addr", "peer-addr", "swim-addr"} {
		c.flags[f] = "127.0.0.1:0"
	}
	c.flags["limits"] = filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(c.flags["limits"], []byte(limits), 0o600); err != nil {
		t.Fatal(err)
	}
	for region := range paths {
		c.peers[region] = listen(t)
	}
	t.Cleanup(c.end)
	return c
}

// listen opens a listener before its daemon starts, for its address must be
// known to others first.
func listen(t *testing.T) net.Listener {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lis.Close() })
	return lis
}

// settings returns those of a region's file, with addresses of this test. No
// flag can take an address back that the file gives, nor give regions.
func (c *cluster) settings(path, name string, seeds []string) config.Config {
	c.t.Helper()
	flags := c.material.flags(strings.TrimSuffix(filepath.Base(path), ".yaml"), name)
	maps.Copy(flags, c.flags)
	flags["state-dir"] = c.t.TempDir()
	l, err := config.Load(config.Sources{File: path, Flags: flags})
	if err != nil {
		c.t.Fatal(err)
	}
	s := l.Config
	s.Peer.Advertise, s.Swim.Advertise, s.Swim.Seeds = "", "", seeds
	for i := range s.Regions {
		s.Regions[i].Peers = []string{c.peers[s.Regions[i].Name].Addr().String()}
	}
	if err := s.Validate(); err != nil {
		c.t.Fatal(err)
	}
	return s
}

// start starts a daemon and waits until it answers.
func (c *cluster) start(name, path string, seeds []string, peers net.Listener) {
	c.t.Helper()
	s := c.settings(path, name, seeds)
	ctx, stop := context.WithCancel(context.Background())
	d := &running{Region: s.Region, Name: s.Name, stop: stop, done: make(chan error, 1), log: &lockedBuffer{}}
	started := make(chan *daemon.Handle, 1)
	o := daemon.Options{
		Config:  s,
		Log:     slog.New(slog.NewTextHandler(d.log, nil)),
		Version: "test",
		Net:     daemon.Net{Listen: func(string) (net.Listener, error) { return peers, nil }},
		Started: func(h *daemon.Handle) { started <- h },
	}
	go func() { d.done <- daemon.Run(ctx, o) }()
	select {
	case d.Handle = <-started:
		c.daemons = append(c.daemons, d)
	case err := <-d.done:
		stop()
		c.t.Fatalf("%s: %v\n%s", name, err, d.log)
	}
}

// whole waits until all daemons are ready and know each other.
func (c *cluster) whole() {
	c.t.Helper()
	var want []string
	for _, d := range c.daemons {
		want = append(want, d.Region+"/"+d.Name)
	}
	slices.Sort(want)
	for _, d := range c.daemons {
		await(c.t, d.log, func() error {
			if err := d.Ready(); err != nil {
				return fmt.Errorf("%s: %w", d.Name, err)
			}
			var got []string
			for _, m := range d.Members() {
				got = append(got, m.Region+"/"+m.Name)
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				return fmt.Errorf("%s knows %v, want %v", d.Name, got, want)
			}
			return nil
		})
	}
}

// hit sends hits of a user to one daemon, which allows them.
func (c *cluster) hit(d *running, user string, hits int) {
	c.t.Helper()
	if _, err := ask(d, fmt.Sprintf("user=%s&hits=%d", user, hits)); err != nil {
		c.t.Fatal(err)
	}
}

// left waits until a user has as much left at each daemon.
func (c *cluster) left(user string, want int) {
	c.t.Helper()
	for _, d := range c.daemons {
		await(c.t, d.log, func() error {
			got, err := ask(d, "peek=true&user="+user)
			if err == nil && got != want {
				err = fmt.Errorf("%s: %s has %d left, want %d", d.Name, user, got, want)
			}
			return err
		})
	}
}

// client keeps no connection, so that a stop does not wait for any.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}

// ask calls a daemon and returns what then remains of the limit.
func ask(d *running, query string) (remaining int, err error) {
	resp, err := client.Get("http://" + d.HTTP() + "/v1/check?domain=shop&" + query)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var answer struct {
		Statuses []struct{ Remaining int }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK || len(answer.Statuses) != 1 {
		return 0, fmt.Errorf("%s: %s, %+v", d.Name, resp.Status, answer)
	}
	return answer.Statuses[0].Remaining, nil
}

// stop stops daemons side by side and wants no error.
func (c *cluster) stop(daemons []*running) {
	c.t.Helper()
	for _, d := range daemons {
		d.stop()
	}
	for _, d := range daemons {
		if err := <-d.done; err != nil {
			c.t.Errorf("%s did not stop in order: %v\n%s", d.Name, err, d.log)
		}
	}
	c.daemons = slices.DeleteFunc(slices.Clone(c.daemons), func(d *running) bool { return slices.Contains(daemons, d) })
}

// end cleans up after a failed test.
func (c *cluster) end() {
	for _, d := range c.daemons {
		d.Kill()
		d.stop()
		<-d.done
	}
}

// await polls until what returns nil.
func await(t *testing.T, log fmt.Stringer, what func() error) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); ; {
		err := what()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still not: %v\n%s", err, log)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// lockedBuffer collects a log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
