//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/georld/rld/internal/await"
)

const (
	// attackRoom is by how much a daemon may grow under an attack on its
	// connections: 77 MB on a machine that does little else.
	attackRoom = 150 << 20
	// honestTime is how long an honest caller is measured, and honestRate how
	// often it calls in a second.
	honestTime = time.Second
	honestRate = 400
)

// attack opens connections to one listener from an address of its own, and
// keeps them.
type attack struct {
	t    *testing.T
	addr string
	mu   sync.Mutex
	open []net.Conn
	done chan struct{} // closed at the end
}

func newAttack(t *testing.T, addr string) *attack {
	return &attack{t: t, addr: addr, done: make(chan struct{})}
}

// dial opens a connection and reads from it until it ends. It returns nil where
// the daemon does not take one.
func (a *attack) dial(first []byte) net.Conn {
	d := net.Dialer{Timeout: 2 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	conn, err := d.Dial("tcp", a.addr)
	if err != nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = append(a.open, conn)
	go func() {
		_, _ = conn.Write(first) // the daemon may have closed it
		_, _ = io.Copy(io.Discard, conn)
		conn.Close()
	}()
	return conn
}

// hold opens n connections that each send some bytes.
func (a *attack) hold(n int, first []byte) {
	for range n {
		a.dial(first)
	}
}

func (a *attack) stop() {
	close(a.done)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.open {
		c.Close()
	}
}

// http2Frame returns a frame of HTTP/2.
func http2Frame(kind, flags byte, call uint32, payload []byte) []byte {
	n := len(payload)
	return append([]byte{
		byte(n >> 16), byte(n >> 8), byte(n), kind, flags, byte(call >> 24), byte(call >> 16), byte(call >> 8), byte(call),
	}, payload...)
}

// http2Begin returns the first bytes of a client of HTTP/2.
func http2Begin() []byte {
	return append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), http2Frame(4, 0, 0, nil)...)
}

// http2Calls returns the headers of calls without a message, from a number on,
// each followed by its cancellation if so wanted.
func http2Calls(from, n int, method string, cancelled bool) []byte {
	var block strings.Builder
	e := hpack.NewEncoder(&block)
	for _, f := range [][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", "/rld.v1.RateLimiter/" + method},
		{":authority", "test"},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
	} {
		_ = e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true}) // in no table
	}
	var out []byte
	for i := from; i < from+n; i++ {
		call := uint32(2*i + 1)
		out = append(out, http2Frame(1, 4, call, []byte(block.String()))...)
		if cancelled {
			out = append(out, http2Frame(3, 0, call, []byte{0, 0, 0, 8})...)
		}
	}
	return out
}

// rapid cancels calls as fast as it can on n connections, and dials anew
// whenever one is closed.
func (a *attack) rapid(n int) {
	for range n {
		go func() {
			var conn net.Conn
			for from := 0; ; {
				select {
				case <-a.done:
					return
				default:
				}
				var begin []byte
				if conn == nil {
					from, begin = 0, http2Begin()
					if conn = a.dial(nil); conn == nil {
						continue
					}
				}
				if _, err := conn.Write(append(begin, http2Calls(from, 100, "Check", true)...)); err != nil {
					conn = nil
				}
				from += 100
			}
		}()
	}
}

// valid asks as fast as it can over n connections, 32 calls at a time each.
func (a *attack) valid(n int, c *cluster) {
	for range n {
		client := newClient(a.t, c.net, a.addr)
		for range 32 {
			go func() {
				for {
					select {
					case <-a.done:
						client.close()
						return
					default:
						_, _ = client.check(time.Second, question{rule: kept, value: "flood", hits: 0})
					}
				}
			}()
		}
	}
}

// honest calls at a steady rate and returns the p99 of the answers. Each call
// without an answer fails the test.
func honest(t *testing.T, what string, call func() error) time.Duration {
	t.Helper()
	var mu sync.Mutex
	var took []time.Duration
	var failed error
	var calls sync.WaitGroup
	tick := time.NewTicker(time.Second / honestRate)
	defer tick.Stop()
	for begin := time.Now(); time.Since(begin) < honestTime; <-tick.C {
		calls.Go(func() {
			sent := time.Now()
			err := call()
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(sent))
			failed = cmp.Or(failed, err)
		})
	}
	calls.Wait()
	if failed != nil {
		t.Errorf("%s: an honest caller got no answer: %v", what, failed)
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

// callGRPC and callHTTP ask the daemon at its two listeners.
func (d *daemon) callGRPC() error {
	_, err := d.client.check(2*time.Second, question{rule: kept, value: "honest", hits: 0})
	return err
}

func (d *daemon) callHTTP() error {
	r, err := d.web.Get("http://" + d.at.http + "/v1/check?domain=" + domain + "&d=kept:honest&hits=0")
	if err != nil {
		return err
	}
	defer r.Body.Close()
	body, _ := io.ReadAll(r.Body)
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", r.Status, body)
	}
	return nil
}

// metrics returns the lines of a metric that are not 0.
func (d *daemon) metrics(name string) string {
	r, err := d.web.Get("http://" + d.at.admin + "/metrics")
	if err != nil {
		return err.Error()
	}
	defer r.Body.Close()
	body, _ := io.ReadAll(r.Body)
	var out []string
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, name+"{") && !strings.HasSuffix(line, " 0\n") {
			out = append(out, strings.TrimSpace(strings.TrimPrefix(line, name)))
		}
	}
	return strings.Join(out, " ")
}

// TestAttacksOnConnections floods one listener after the other with
// connections, streams and cancelled calls: an honest caller at another one is
// served, and memory stays bounded. Times are reported only: the attack takes
// processors from the daemon, beside a flood of valid calls to compare with.
func TestAttacksOnConnections(t *testing.T) {
	c := newCluster(t, loopback{}, 2, "us")
	victim, mate := c.daemon("us-0"), c.daemon("us-1")
	atGRPC, atHTTP := victim.callGRPC, victim.callHTTP
	var start int
	for _, tt := range []struct {
		name   string
		honest func() error
		addr   string
		begin  func(a *attack)
	}{
		{"valid calls, to compare", atHTTP, victim.at.grpc, func(a *attack) { a.valid(4, c) }},
		{"50,000 silent streams on 50 connections", atHTTP, victim.at.grpc, func(a *attack) {
			a.hold(50, append(http2Begin(), http2Calls(0, 1_000, "CheckStream", false)...))
		}},
		{"19,800 silent streams on 200 connections", atHTTP, victim.at.grpc, func(a *attack) {
			a.hold(200, append(http2Begin(), http2Calls(0, 99, "CheckStream", false)...))
		}},
		{"10,000 calls without a message on 100 connections", atHTTP, victim.at.grpc, func(a *attack) {
			a.hold(100, append(http2Begin(), http2Calls(0, 100, "Check", false)...))
		}},
		{"10,000 idle connections of gRPC", atHTTP, victim.at.grpc, func(a *attack) { a.hold(10_000, http2Begin()) }},
		{"10,000 idle connections of HTTP", atGRPC, victim.at.http, func(a *attack) { a.hold(10_000, nil) }},
		{"rapid resets on 4 connections", atHTTP, victim.at.grpc, func(a *attack) { a.rapid(4) }},
		{"5,000 silent connections of peers", atGRPC, victim.at.peer, func(a *attack) { a.hold(5_000, nil) }},
	} {
		before := honest(t, tt.name, tt.honest)
		if start == 0 {
			start = victim.resident(t)
		}
		a := newAttack(t, tt.addr)
		tt.begin(a)
		during := honest(t, tt.name, tt.honest)
		grown := victim.resident(t) - start
		settled := honest(t, tt.name, tt.honest)
		grown = max(grown, victim.resident(t)-start)
		a.stop()
		t.Logf("%s: p99 %v before, %v in the first second (x %.1f), %v in the next (x %.1f); %d MB over the start",
			tt.name, before, during, float64(during)/float64(before), settled, float64(settled)/float64(before), grown>>20)
		if grown > attackRoom {
			t.Errorf("%s: the daemon grew by %d MB, want at most %d", tt.name, grown>>20, attackRoom>>20)
		}
	}
	t.Logf("closed: %s", victim.metrics("rld_closed_connections_total"))

	a := newAttack(t, victim.at.peer)
	mate.kill(t)
	a.hold(2_000, nil)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				a.dial(nil)
			}
		}
	}()
	mate.start(t)
	c.list(patience, c.daemons, c.daemons)
	await.True(t, "the client has found the restarted daemon", func() bool { return mate.callGRPC() == nil })
	mate.spend(t, day, "beside", 7)
	c.agree(patience, c.daemons, day, "beside", dayLimit-7)
	close(stop)
	a.stop()
}

// TestFullFileTable has a daemon with few open files, and callers that open as
// many connections as they can at all of its listeners.
func TestFullFileTable(t *testing.T) {
	const most = 256
	c := newCluster(t, loopback{}, 2, "us")
	victim, mate := c.daemon("us-0"), c.daemon("us-1")
	victim.terminate(t)
	victim.argv = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$@"`, most), "sh"}, victim.argv...)
	victim.start(t)
	c.list(patience, c.daemons, c.daemons)
	request := []byte("GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n")
	for _, at := range []struct {
		addr  string
		first []byte
	}{
		{victim.at.grpc, http2Begin()},
		{victim.at.grpc, nil},
		{victim.at.http, request},
		{victim.at.http, nil},
		{victim.at.admin, request},
		{victim.at.admin, nil},
		{victim.at.peer, nil},
		{victim.at.swim, nil},
	} {
		a := newAttack(t, at.addr)
		defer a.stop()
		a.hold(2*most, at.first)
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", victim.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files are open of %d", len(files), most)
	healthy := func() error {
		r, err := victim.web.Get("http://" + victim.at.admin + "/healthz")
		if err == nil {
			r.Body.Close()
		}
		return err
	}
	fresh := newClient(t, c.net, victim.at.grpc) // follows the health of gRPC
	defer fresh.close()
	for what, call := range map[string]func() error{
		"health": healthy, "HTTP": victim.callHTTP, "gRPC": victim.callGRPC,
		"a new client of gRPC": func() error {
			_, err := fresh.check(2*time.Second, question{rule: kept, value: "honest", hits: 0})
			return err
		},
	} {
		await.True(t, what+" is served", func() bool { return call() == nil })
	}
	mate.spend(t, day, "full", 7)
	c.agree(patience, c.daemons, day, "full", dayLimit-7)
	mate.kill(t)
	mate.start(t)
	c.list(patience, c.daemons, c.daemons)
	log, err := os.ReadFile(victim.log)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(log), "too many open files") {
		t.Error("the daemon had too many open files")
	}
	t.Logf("closed: %s", victim.metrics("rld_closed_connections_total"))
}
