// Package keytable holds the counters of many keys: a Table of entries, each a
// cell with its expiry, and a Filter of keys that have none of their own. It
// is built for a lookup with one cache miss and for no work by the garbage
// collector; see docs/adr/0044.
package keytable
