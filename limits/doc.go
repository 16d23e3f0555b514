// Package limits compiles the limits language: YAML bytes in, rules and
// diagnostics out. It reads no files; package config finds and watches them.
//
// The language is a superset of envoyproxy/ratelimit's. A file has one domain
// and a tree of descriptors, and each descriptor may have a limit:
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
// # Limits of many daemons
//
// These fields of rate_limit, or of the defaults of a file, define a limit that
// many daemons enforce:
//
//	scope           global; region: counts stay in the region; node: in the daemon
//	consistency     eventual: counts are replicated, and each daemon decides at once;
//	                partition: never more than the limit; strict: one owner decides
//	overage_budget  a percentage by which all daemons together may exceed an eventual
//	                limit, never more. Unset: a limit is only estimated. At most the
//	                possible overage of the other regions, 200% for three regions
//	placement       the holders of the rights: auto, spread, region or owner
//	home            the home region of the keys of a strict limit, or of one with
//	                placement owner. Unset: it follows from the key
//	weights         {us-east: 60%, eu-west: 40%}: fixes the regions' shares of the
//	                rights. Unset: they follow demand
//	on_failure      of a strict limit without its owner: deny, allow, {share: 10%}.
//	                The share is reserved from the limit, in equal parts for the
//	                regions, which then continue with their part
//	carry_debt      true: overage is deducted from the next window
//	charge_denied   true: denied hits count too
//
// A limit has rights when it has an overage_budget or is partitioned. A daemon
// admits no more than the rights it holds, and all rights together sum to the
// limit and its budget. With placement auto they are spread over all daemons if
// each gets [MinRights] of them. With fewer, but as many for each region, one
// daemon of each region holds the region's rights and grants them to the
// others. With fewer still, one daemon in the world does, the owner of the key.
// Weights name all regions and sum to exactly 100%.
//
// The owner of a key decides a strict limit, and a daemon of a cluster needs
// the same folder for it as for rights. An owner charges only the hits that it
// grants, so a strict limit has neither debt nor charge_denied.
//
// # Compatibility
//
// Any file that envoyproxy/ratelimit accepts loads unchanged with the same
// result, including its reading of YAML 1.1: yes and on are booleans, the last
// of two equal fields wins, and a "<<" merge takes effect at its position.
// These files are rejected nevertheless: a second document, which
// envoyproxy/ratelimit ignores; descriptors nested deeper than a request has
// entries; field names written with "?"; faults in a value that a later one
// replaces; and files beyond the bounds below.
//
// The scripts in testdata/scripts are examples of the language, with rejected
// ones.
package limits
