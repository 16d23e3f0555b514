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
