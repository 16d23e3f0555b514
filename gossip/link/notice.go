package link

import "time"

// The time between two log lines with the same key.
const (
	noticeEach = time.Minute
	noticeRare = time.Hour // for conditions that may be intended
)
