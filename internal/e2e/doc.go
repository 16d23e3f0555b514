// Package e2e holds the tests of real rld processes: clusters on loopback and
// in network namespaces, under load, with daemons that are killed, frozen,
// restarted and partitioned. They need the build tag e2e:
//
//	go test -tags e2e -count=1 -timeout 10m -v ./internal/e2e
//
// Most tests wait most of their time, and run two at a time. Those that measure
// latency or memory run alone.
//
// Every test audits the admitted hits: the total of each key and window is at
// most the limit plus the hits that the daemons could not yet know of each
// other. The test computes that allowance from the time of each hit and the
// ages of the views, see Views.Unseen. Tests without the tag cover that
// arithmetic.
//
// The tests of partitions create their own network namespaces. They need Linux,
// root, and the programs ip and nft, and are skipped with a message without
// them.
//
// A failing test prints the ends of the daemons' logs and keeps the whole logs.
// All daemons end with the test, even when it is killed.
package e2e
