//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// namespaces is a network that can be partitioned: a network namespace for each
// region, wired to a bridge in one more, the hub, where the test itself runs.
// It drops packets between regions; the test reaches all daemons at all times.
type namespaces struct {
	t       testing.TB
	prefix  string // of the namespaces' names
	regions []string
	dials   chan func() // run on the thread that is in the hub
}

// The addresses: the hub is 10.77.0.1 and region i 10.77.(i+1).1.
const (
	hubIP   = "10.77.0.1"
	netBits = "/16"
)

// namePrefix begins the names of all namespaces of these tests; the rest is
// the process they belong to, the number of the network, and the region.
const namePrefix = "rld-e2e-"

// networks counts the networks of this process.
var networks atomic.Int64

// installing is held by a test that looks for tools, or installs them.
var installing sync.Mutex

// newNamespaces makes a network for regions, and removes it when the test ends.
// Where that is not possible it skips the test with the reason.
func newNamespaces(t testing.TB, regions ...string) *namespaces {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root: run the tests as root to see regions cut off")
	}
	for tool, pkg := range map[string]string{"ip": "iproute2", "nft": "nftables"} {
		needTool(t, tool, pkg)
	}
	removeStale(t)
	prefix := fmt.Sprintf("%s%d-%d-", namePrefix, os.Getpid(), networks.Add(1))
	n := &namespaces{t: t, prefix: prefix, regions: regions, dials: make(chan func())}
	t.Cleanup(n.remove)
	n.enterHub()
	n.must("ip", "-n", n.name("hub"), "link", "add", "bridge", "type", "bridge")
	n.must("ip", "-n", n.name("hub"), "addr", "add", hubIP+netBits, "dev", "bridge")
	n.up("hub", "bridge", "lo")
	for i, region := range regions {
		port := "port" + strconv.Itoa(i)
		n.must("ip", "netns", "add", n.name(region))
		n.must("ip", "-n", n.name("hub"), "link", "add", port, "type", "veth", "peer", "name", "wire", "netns", n.name(region))
		n.must("ip", "-n", n.name("hub"), "link", "set", port, "master", "bridge")
		n.must("ip", "-n", n.name(region), "addr", "add", n.host(i)+netBits, "dev", "wire")
		n.up("hub", port)
		n.up(region, "wire", "lo")
	}
	return n
}

// needTool skips the test unless a program is there or can be installed. In CI
// it fails: a test that is always skipped tests nothing.
func needTool(t testing.TB, tool, pkg string) {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	if _, err := exec.LookPath(tool); err == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	install := func() ([]byte, error) {
		return exec.CommandContext(ctx, "apt-get", "install", "-y", "--no-install-recommends", pkg).CombinedOutput()
	}
	out, err := install()
	if err != nil {
		// The lists of packages may be missing or old; the second try shows it.
		_ = exec.CommandContext(ctx, "apt-get", "update").Run()
		out, err = install()
	}
	if err == nil {
		_, err = exec.LookPath(tool)
	}
	if err == nil {
		return
	}
	say := t.Skipf
	if os.Getenv("CI") != "" {
		say = t.Fatalf
	}
	say("%s is needed, and %s cannot be installed: %v\n%s", tool, pkg, err, out)
}

// removeStale removes the namespaces of processes that are gone.
func removeStale(t testing.TB) {
	t.Helper()
	entries, err := os.ReadDir("/run/netns")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), namePrefix)
		pid, err := strconv.Atoi(strings.SplitN(rest, "-", 2)[0])
		if ours && err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = command("ip", "netns", "del", e.Name()) // another run may do the same
		}
	}
}

// enterHub makes the hub and a thread in it. Connections that this thread opens
// are in the hub, also for other threads.
func (n *namespaces) enterHub() {
	n.t.Helper()
	entered := make(chan error)
	go func() {
		// Never unlocked: the thread ends with the goroutine, and nothing
		// else may ever run in that namespace.
		runtime.LockOSThread()
		if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
			entered <- err
			return
		}
		entered <- command("ip", "netns", "attach", n.name("hub"), strconv.Itoa(syscall.Gettid()))
		for dial := range n.dials {
			dial()
		}
	}()
	if err := <-entered; err != nil {
		n.t.Skipf("network namespaces cannot be made here: %v", err)
	}
}

// remove removes everything. The daemons have ended before.
func (n *namespaces) remove() {
	close(n.dials)
	for _, name := range append([]string{"hub"}, n.regions...) {
		if _, err := os.Stat("/run/netns/" + n.name(name)); err != nil {
			continue
		}
		if err := command("ip", "netns", "del", n.name(name)); err != nil {
			n.t.Error(err)
		}
	}
}

func (n *namespaces) name(region string) string { return n.prefix + region }

func (n *namespaces) up(region string, devices ...string) {
	n.t.Helper()
	for _, d := range devices {
		n.must("ip", "-n", n.name(region), "link", "set", d, "up")
	}
}

func (n *namespaces) must(argv ...string) {
	n.t.Helper()
	if err := command(argv...); err != nil {
		n.t.Fatal(err)
	}
}

// command runs a program and returns an error with its output.
func command(argv ...string) error {
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

func (n *namespaces) host(i int) string { return fmt.Sprintf("10.77.%d.1", i+1) }

func (n *namespaces) ports(_ testing.TB, count int) []int {
	all := make([]int, count)
	for i := range all {
		all[i] = firstPort + i // nobody else is there
	}
	return all
}

func (n *namespaces) command(i int, argv []string) []string {
	return append([]string{"ip", "netns", "exec", n.name(n.regions[i])}, argv...)
}

func (n *namespaces) dial(ctx context.Context, addr string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	select {
	case n.dials <- func() {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
		done <- result{conn, err}
	}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r := <-done
	return r.conn, r.err
}

// direction is the direction in which packets between a region and the others
// are lost.
type direction string

const (
	outgoing direction = "outgoing"
	bothWays direction = "both ways"
)

// cut loses packets of a region until heal.
func (n *namespaces) cut(region string, d direction) {
	n.t.Helper()
	rules := fmt.Sprintf("table inet cut {\n"+
		"chain out { type filter hook output priority 0; oifname \"wire\" ip daddr != %[1]s drop; }\n", hubIP)
	if d == bothWays {
		rules += fmt.Sprintf("chain in { type filter hook input priority 0; iifname \"wire\" ip saddr != %s drop; }\n", hubIP)
	}
	cmd := exec.Command("ip", "netns", "exec", n.name(region), "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules + "}\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("nft in %s: %v\n%s", region, err, out)
	}
}

// heal ends a cut.
func (n *namespaces) heal(region string) {
	n.t.Helper()
	n.must("ip", "netns", "exec", n.name(region), "nft", "delete", "table", "inet", "cut")
}
