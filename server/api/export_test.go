package api

// OutboxBytes is outboxBytes, for the bound on what waits for a client.
const OutboxBytes = outboxBytes

// SetMaxRefunded bounds the refunds that a service remembers.
func SetMaxRefunded(s *Service, n int) { s.refunds.Max = n }

// MaxWaiting is maxWaiting.
const MaxWaiting = maxWaiting
