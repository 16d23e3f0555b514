// Package limits is the limits language: YAML bytes in, rules and diagnostics
// out. It reads no files; package config finds and watches them.
//
// The language is a superset of envoyproxy/ratelimit's. A file names one
// domain and holds a tree of descriptors, and a limit may hang on any of them:
//
//	domain: edge
//	defaults: {algorithm: sliding_window}
//	descriptors:
//	  - key: tier
//	    value: premium
//	    descriptors:
//	      - key: user_id
//	        rate_limit: {unit: second, requests_per_unit: 1000, algorithm: token_bucket, burst: 2000}
//
// # Across daemons
//
// What a limit means where many daemons count is said inside rate_limit, or in
// the defaults of the file:
//
//	scope           global; region: counts stay in the region; node: in the daemon
//	consistency     eventual: counts travel, and each daemon decides at once;
//	                partition: never more than the limit; strict: one home decides
//	overage_budget  a percentage: the world may exceed an eventual limit by it, and
//	                never by more. Unset: a limit is only estimated. At most what
//	                the other regions together could be over, 200% for three
//	placement       who holds rights: auto, spread, region or home
//	weights         {us-east: 60%, eu-west: 40%}: pins the regions' shares of the
//	                rights. Unset: they follow demand
//	on_failure      of a strict limit without its home: deny, allow, {share: 10%}
//	carry_debt      true: what went over is paid back in the next window
//
// A limit has rights when it has an overage_budget or is partitioned. A daemon
// admits no more than the rights it holds, and all rights of the world sum to
// the limit and its budget. With auto they are spread over all daemons if each
// gets [MinRights] of them; with fewer they belong into fewer hands, to which
// calls would have to be forwarded. Nothing forwards them yet, so such a limit
// is refused in a cluster of more daemons than hands; placement: spread takes it
// anyway. Weights name all regions and sum to exactly 100%.
//
// # The reference
//
// Any file that the reference accepts loads unchanged and means the same, down
// to how it reads YAML 1.1: yes and on are booleans, the last of two equal
// fields wins, and a "<<" merge takes effect where it stands. Refused though the
// reference lets them pass are a second document, of which it would read
// nothing; descriptors nested deeper than a request has entries; field names
// written with "?"; faults in a value that a later one replaces; and whatever
// goes beyond the bounds below.
//
// The scripts in testdata/scripts show the language by example, refusals included.
package limits
