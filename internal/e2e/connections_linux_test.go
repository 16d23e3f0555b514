//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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

// attackRounds returns how often an attack is measured: the p99 of one second
// is the fourth of 400 calls.
func attackRounds() int {
	if longRun() {
		return 9
	}
	return 1
}

// median returns the median of some times, rounded.
func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2].Round(10 * time.Microsecond)
}

// callGRPC and callHTTP ask the daemon at its two listeners.
func (d *daemon) callGRPC() error {
	_, err := d.client.check(2*time.Second, question{rule: kept, value: "honest", hits: 0})
	return err
}

func (d *daemon) callHTTP() error {
	r, err := d.web.Get("http://" + d.at.http + "/v1/check?domain=" + domain + "&d=kept:honest&peek=true")
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
// served, and memory stays bounded. Times are reported only: those of a long
// run, medians, beside the same attack on nobody and a flood of valid calls.
func TestAttacksOnConnections(t *testing.T) {
	c := newCluster(t, loopback{}, 2, "us")
	victim, mate := c.daemon("us-0"), c.daemon("us-1")
	atGRPC, atHTTP := victim.callGRPC, victim.callHTTP
	var start int
	for _, tt := range []struct {
		name   string
		honest func() error
		addr   string
	}{
		{"valid calls, to compare", atHTTP, victim.at.grpc},
		{"50,000 silent streams on 50 connections", atHTTP, victim.at.grpc},
		{"19,800 silent streams on 200 connections", atHTTP, victim.at.grpc},
		{"10,000 calls without a message on 100 connections", atHTTP, victim.at.grpc},
		{"10,000 idle connections of gRPC", atHTTP, victim.at.grpc},
		{"10,000 idle connections of HTTP", atGRPC, victim.at.http},
		{"rapid resets on 4 connections", atHTTP, victim.at.grpc},
		{"5,000 silent connections of peers", atGRPC, victim.at.peer},
	} {
		var before, beside, first, next []time.Duration
		grown := 0
		for range attackRounds() {
			before = append(before, honest(t, tt.name, tt.honest))
			if start == 0 {
				start = victim.resident(t)
			}
			stop := attackFromElsewhere(t, tt.name, "")
			beside = append(beside, honest(t, tt.name, tt.honest))
			stop()
			stop = attackFromElsewhere(t, tt.name, tt.addr)
			first = append(first, honest(t, tt.name, tt.honest))
			grown = max(grown, victim.resident(t)-start)
			next = append(next, honest(t, tt.name, tt.honest))
			grown = max(grown, victim.resident(t)-start)
			stop()
		}
		base := median(beside)
		t.Logf("%s: p99 %v before, %v beside an attack on nobody, %v in the first second (x %.1f), %v in the next (x %.1f); %d MB over the start",
			tt.name, median(before), base, median(first), float64(median(first))/float64(base),
			median(next), float64(median(next))/float64(base), grown>>20)
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
