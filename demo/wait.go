package demo

import (
	"context"
	"time"
)

// pause waits for a time or until ctx ends. It reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err() == nil
}

// every calls f at intervals until ctx ends. It leaves out the ticks that come
// while f runs.
func every(ctx context.Context, interval time.Duration, f func(now time.Time)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case now := <-tick.C:
			f(now)
		}
	}
}
