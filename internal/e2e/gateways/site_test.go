//go:build e2e

package gateways

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The addresses in the examples.
const (
	exampleProxy   = "127.0.0.1:8000"
	exampleAll     = "http://:8000" // for all hosts, with bind
	exampleService = "127.0.0.1:8001"
	exampleRLD     = "127.0.0.1:8080"
	exampleGRPC    = "127.0.0.1:8081" // of rld
	exampleTCP     = "127.0.0.1:8002" // of the proxy
	exampleSocket  = "abns@rld"
)

// rldCommand starts rld in a copy of an example; its page has the same command.
const rldCommand = "rld serve --config rld.yaml --limits limits.yaml"

// serviceMark is in the answers of the service, which no proxy can invent.
const serviceMark = "X-Service-Answered"

// responseCost is the cost that the service states in X-Cost, for proxies that
// read it.
const responseCost = "7"

// site is an rld, a proxy in front of a service, and the service.
type site struct {
	proxy
	addr     string // of the proxy
	tcpAddr  string // of its TCP listener, if it has one
	rldAddr  string
	grpcAddr string // of rld
	folder   string
	rld      *process
	reached  *atomic.Int64 // requests at the service
	web      *http.Client
}

// example returns the path of a file of the example.
func (p proxy) example(file string) string {
	return filepath.Join("..", "..", "..", "examples", "gateways", p.folder, file)
}

// newSite starts rld and the proxy with the files of the example.
func newSite(t *testing.T, p proxy) *site {
	t.Helper()
	ports := freeAddresses(t, 4)
	s := &site{proxy: p, rldAddr: ports[0], grpcAddr: ports[1], folder: t.TempDir(), reached: new(atomic.Int64)}
	s.web = &http.Client{
		Timeout:   patience,
		Transport: &http.Transport{MaxIdleConnsPerHost: workers, DisableCompression: true},
	}
	t.Cleanup(s.web.CloseIdleConnections)
	for _, file := range []string{"rld.yaml", "limits.yaml"} {
		s.copyFile(t, file)
	}
	s.rld = s.startRLD(t, ports[2])
	s.addr = s.startProxy(t, s.asked(), ports[3])
	return s
}

// asked returns the address of rld that the proxy asks.
func (s *site) asked() string {
	if s.grpc {
		return s.grpcAddr
	}
	return s.rldAddr
}

// startRLD starts rld, with other addresses than the default ones.
func (s *site) startRLD(t *testing.T, admin string) *process {
	t.Helper()
	command := fmt.Sprintf("%s --http-addr %s --grpc-addr %s --admin-addr %s --admin-uds %s",
		rldCommand, s.rldAddr, s.grpcAddr, admin, filepath.Join(s.folder, "admin.sock"))
	p := startProcess(t, s.folder, "rld", command, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	p.waitFor(t, s.rldAddr)
	return p
}

// startProxy starts a service and the proxy in front of it, which asks rld at
// the given address. It returns the address of the proxy.
func (s *site) startProxy(t *testing.T, rldAddr, addr string) string {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.reached.Add(1)
		_, _ = io.Copy(io.Discard, r.Body) // the client may be gone
		w.Header().Set(serviceMark, "yes")
		w.Header().Set("X-Cost", responseCost)
	}))
	t.Cleanup(service.Close)
	_, port, _ := net.SplitHostPort(addr)
	pairs := []string{exampleAll, "http://:" + port, exampleSocket, exampleSocket + port}
	s.tcpAddr = freeAddresses(t, 1)[0]
	for _, p := range [][2]string{
		{exampleProxy, addr},
		{exampleService, service.Listener.Addr().String()},
		{exampleRLD, rldAddr},
		{exampleGRPC, rldAddr},
		{exampleTCP, s.tcpAddr},
	} {
		pairs = append(pairs, p[0], p[1], portField(p[0]), portField(p[1]))
	}
	for _, file := range s.files {
		s.copyFile(t, file, pairs...)
	}
	p := startProcess(t, s.folder, s.proxy.folder, s.command, s.environment())
	p.waitFor(t, addr)
	return addr
}

// portField returns the port of an address as Envoy has it, after the host.
func portField(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return "port_value: " + port + "}"
}

// copyFile copies a file of the example, with other addresses: pairs of old
// and new text.
func (s *site) copyFile(t *testing.T, file string, pairs ...string) {
	t.Helper()
	data, err := os.ReadFile(s.example(file))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(pairs...).Replace(string(data))
	if old := s.replace[0]; old != "" && len(s.files) > 0 && file == s.files[0] {
		if strings.Count(text, old) != 1 {
			t.Fatalf("%s: want %q once", file, old)
		}
		text = strings.Replace(text, old, s.replace[1], 1)
	}
	if err := os.WriteFile(filepath.Join(s.folder, file), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// taken returns how many requests have reached the service since the last call.
func (s *site) taken() int { return int(s.reached.Swap(0)) }

// freeAddresses returns addresses on loopback that were free just now.
func freeAddresses(t *testing.T, n int) []string {
	t.Helper()
	var out []string
	for range n {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer lis.Close()
		out = append(out, lis.Addr().String())
	}
	return out
}

// awayFromMidnight waits until no window of a day ends in a test: limits that
// begin again would admit more.
func awayFromMidnight(t *testing.T) {
	t.Helper()
	now := time.Now().UTC()
	left := now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now)
	if left < time.Minute {
		t.Logf("waiting %v for the next day", left)
		time.Sleep(left + time.Second)
	}
}

// relay forwards connections to an address and delays what comes back.
type relay struct {
	delay atomic.Int64 // nanoseconds
	addr  string
}

// newRelay starts a relay that ends with the test.
func newRelay(t *testing.T, to string, delay time.Duration) *relay {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		lis.Close()
	})
	r := &relay{addr: lis.Addr().String()}
	r.delay.Store(int64(delay))
	go func() {
		for {
			near, err := lis.Accept()
			if err != nil {
				return
			}
			go r.forward(ctx, near, to)
		}
	}()
	return r
}

// forward connects one connection with another one to an address.
func (r *relay) forward(ctx context.Context, near net.Conn, to string) {
	far, err := net.Dial("tcp", to)
	if err != nil {
		near.Close()
		return
	}
	stop := context.AfterFunc(ctx, func() {
		near.Close()
		far.Close()
	})
	defer stop()
	go func() {
		_, _ = io.Copy(far, near) // either side may end
		far.Close()
	}()
	defer near.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := far.Read(buf)
		if err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(r.delay.Load())):
		}
		if _, err := near.Write(buf[:n]); err != nil {
			return
		}
	}
}
