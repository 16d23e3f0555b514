package api

// OutboxBytes is outboxBytes, for the bound on what waits for a client.
const OutboxBytes = outboxBytes

// RefundGrace is refundGrace.
const RefundGrace = refundGrace

// SetMaxRefunded bounds the refunds that a service remembers.
func SetMaxRefunded(s *Service, n int) { s.ledger.max = n }

// MaxWaiting is maxWaiting.
const MaxWaiting = maxWaiting
