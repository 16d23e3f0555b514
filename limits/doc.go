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
//	home            the region that the keys of a strict limit, or of one placed at
//	                home, are at home in. Unset: it follows from the key
//	weights         {us-east: 60%, eu-west: 40%}: pins the regions' shares of the
//	                rights. Unset: they follow demand
//	on_failure      of a strict limit without its home: deny, allow, {share: 10%}.
//	                The share is set aside from the limit, in even parts for the
//	                regions, which then go on with their part
//	carry_debt      true: what went over is paid back in the next window
//	charge_denied   true: what is refused counts too
//
// A limit has rights when it has an overage_budget or is partitioned. A daemon
// admits no more than the rights it holds, and all rights of the world sum to
// the limit and its budget. With auto they are spread over all daemons if each
// gets [MinRights] of them. With fewer, but so many for each region, one daemon
// of each region holds the region's and grants them to the others; with fewer
// still one daemon of the world does, the home of the key. Weights name all
// regions and sum to exactly 100%.
//
// A strict limit is always decided at the home of the key, and a daemon of a
// cluster needs the same folder for it as for rights. A home charges what it
// grants: a strict limit has neither debt nor charge_denied.
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
