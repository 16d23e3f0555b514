package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/georld/rld/server/web"
)

// Forward auth is measured behind a real nginx, which asks rld at one of its
// sockets, and at another one a handler that always answers 204.

// roleNoContent is a process with that handler.
const roleNoContent = "as-204-server"

// serveNoContent is its main function: it prints where it listens and serves
// until its input ends. The server is that of rld, and its handler is none.
func serveNoContent(in io.Reader, out io.Writer) {
	lis := must(net.Listen("tcp", "127.0.0.1:0"))
	s := web.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	go func() {
		_, _ = io.Copy(io.Discard, in)
		s.Close()
	}()
	fmt.Fprintln(out, lis.Addr())
	if err := s.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
		check(err)
	}
}

// gatewayPath is the path of the mapping of gatewaySettings.
const gatewayPath = "/v1/forward-auth/bench"

// gatewaySettings are settings of rld with a mapping as that of
// examples/gateways/nginx: a hashed header and the path, and the address of the
// client.
func gatewaySettings() string {
	return fmt.Sprintf(`gateways:
  bench:
    domain: %s
    descriptors:
      - [{key: %s, header: X-User, hash: true}, {key: path, template: /v1/*}]
      - [{key: ip, client: {hops: 1}}]
    on_no_match: deny
    deny_status: 403
`, benchDomain, benchKey)
}

// gatewayLimits are limits for both descriptors, which nobody reaches.
func gatewayLimits() string {
	return fmt.Sprintf(`domain: %s
descriptors:
  - key: %s
    descriptors:
      - {key: path, value: /v1/*, rate_limit: {unit: hour, requests_per_unit: %d}}
  - {key: ip, rate_limit: {unit: hour, requests_per_unit: %d}}
`, benchDomain, benchKey, uint32(benchRequests), uint32(benchRequests))
}

// nginxServer is a server of nginx that asks an address about each request, and
// answers those that may pass with a file.
const nginxServer = `
    upstream %[1]s { server %[2]s; keepalive 64; keepalive_requests 1000000; }
    server {
        listen unix:%[3]s;
        root .;
        location / {
            auth_request /auth;
            try_files /passed =500;
        }
        location = /auth {
            internal;
            proxy_pass http://%[1]s%[4]s;
            proxy_http_version 1.1;
            proxy_method HEAD;
            proxy_pass_request_body off;
            proxy_set_header Content-Length "";
            proxy_set_header Connection "";
            proxy_set_header X-Original-URI $request_uri;
            proxy_set_header X-Original-Method $request_method;
            proxy_set_header X-Forwarded-For 192.0.2.1; # of the client: unix sockets have none
        }
    }
`

// startNginx starts an nginx with a server for each address, a pair of the
// socket to listen at and the address to ask.
func (b *bench) startNginx(ctx context.Context, path string, sockets, asked [2]string) *child {
	conf := "daemon off; master_process off; pid nginx.pid; error_log stderr;\nevents { worker_connections 1024; }\n" +
		"http {\n    access_log off;\n    keepalive_requests 1000000;\n" +
		"    client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t; uwsgi_temp_path t; scgi_temp_path t;\n"
	for i, name := range []string{"rld", "noop"} {
		conf += fmt.Sprintf(nginxServer, name, asked[i], sockets[i], gatewayPath)
	}
	b.file("passed", "passed\n")
	c := must(startChild(ctx, "nginx", b.dir, path, "-p", b.dir, "-c", b.file("nginx.conf", conf+"}\n")))
	for start := time.Now(); ; {
		conn, err := net.Dial("unix", sockets[1]) // which it opens last
		if err == nil {
			conn.Close()
			return c
		}
		if time.Since(start) > readyWait || sleep(ctx, readyPoll) != nil {
			check(errors.Join(c.stop(), c.failed(fmt.Errorf("it does not listen after %v: %w", time.Since(start), err))))
		}
	}
}

// measureForwardAuth compares the requests a second of clients of a gateway
// that asks rld about each, with those where it asks a handler that always
// answers 204: the median of the ratios of the rounds.
func measureForwardAuth(ctx context.Context, b *bench) outcome {
	path, err := exec.LookPath("nginx")
	if err != nil {
		check(leftOut("there is no nginx here: apt-get install nginx-light"))
	}
	p := b.network()
	s := b.serve(ctx, b.file("gateway.yaml", gatewayLimits()), "--config", b.file("rld.yaml", gatewaySettings()))
	defer finish(s.stop)
	noop := must(startRole(ctx, roleNoContent, b.dir))
	defer finish(noop.stop)
	var jobs [2]job
	var sockets [2]string
	for i := range jobs {
		sockets[i] = filepath.Join(b.dir, fmt.Sprintf("nginx-%d", i))
		jobs[i] = job{Kind: kindHTTP, Target: sockets[i], Flight: flight, Length: b.load / rateTurns}
	}
	n := b.startNginx(ctx, path, sockets, [2]string{s.http, must(noop.readLine())})
	defer finish(n.stop)
	p.warm(b, jobs[:]...)
	return compareRatios(interleave(ctx, b.rounds(7), rateTurns, p.rate(jobs[0]), p.rate(jobs[1])),
		"the same nginx, and a handler that always answers 204")
}
