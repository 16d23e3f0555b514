// Package gateways holds the tests of real proxies in front of a real rld: each
// runs the files of its folder in examples/gateways. They need the build tag
// e2e:
//
//	go test -tags e2e -count=1 -timeout 5m -v ./internal/e2e/gateways
//
// The proxies are packages of Debian, which the tests install if they run as
// root. With RLD_E2E_LONG set, the tests also build proxies from Go modules.
//
// A service in the test process is behind the proxy and counts the requests
// that reach it: those are the admitted ones, whatever the client sees.
package gateways
