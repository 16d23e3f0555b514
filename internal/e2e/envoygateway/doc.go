// Package envoygateway holds the test of rld in the place of the rate limit
// deployment of a real Envoy Gateway, which folder modules builds. It needs the
// build tag e2e, RLD_E2E_LONG, Linux and root:
//
//	RLD_E2E_LONG=1 go test -tags e2e -count=1 -timeout 30m -v ./internal/e2e/envoygateway
//
// Envoy Gateway runs alone, from files, in a network namespace of its own. rld
// runs in a second one as the pod would: the command, environment, files, user
// and ports are those of the deployment that Envoy Gateway tests its own code
// with. Envoy is not there: the test gets the configuration of its listener and
// its routes from Envoy Gateway, and calls rld with the descriptors that they
// give a request.
package envoygateway
