package api

// OutboxBytes is outboxBytes, for the bound on what waits for a client.
const OutboxBytes = outboxBytes

// MaxWaiting is maxWaiting.
const MaxWaiting = maxWaiting
