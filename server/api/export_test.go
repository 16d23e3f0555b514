package api

// OutboxBytes is outboxBytes, for the bound on what waits for a client.
const OutboxBytes = outboxBytes

// ReleaseGrace is releaseGrace.
const ReleaseGrace = releaseGrace

// SetMaxReleased bounds the releases that a service remembers.
func SetMaxReleased(s *Service, n int) { s.ledger.max = n }

// MaxWaiting is maxWaiting.
const MaxWaiting = maxWaiting
