// Package files holds the tests of files that need large modules: those of
// Envoy in examples/gateways, with its own protos and with a real rld that is
// asked as Envoy asks; those of gateways that no test runs; and the workflows
// of public CI.
//
//	go -C internal/e2e/gateways/files test -count=1 ./...
package files
