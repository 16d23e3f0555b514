package route

import "github.com/georld/rld/internal/rendezvous"

// NameHash names a strict voter of a region in messages and records. It is the
// same on all daemons and over restarts.
func NameHash(name string) uint64 { return rendezvous.Hash("replica", name) }
