// Package e2e holds the tests of real rld processes: clusters of them on
// loopback and in network namespaces, under load, while daemons are killed,
// frozen, restarted and cut off. They need the build tag e2e:
//
//	go test -tags e2e -count=1 -timeout 10m -v ./internal/e2e
//
// Every test audits what was admitted: for each key and window its total is at
// most the limit and what the daemons could not yet know of each other, which
// is computed from when each hit was admitted and how old views were. See
// Ledger.Unseen. That arithmetic has tests of its own, without the tag.
//
// The tests of partitions make their own network namespaces. They need Linux,
// root, and the programs ip and nft, and are skipped with a word without them.
//
// When a test fails, it prints the ends of the daemons' logs and keeps them
// whole. All daemons end with the test, also when it is killed.
package e2e
