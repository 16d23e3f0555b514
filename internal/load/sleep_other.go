//go:build !linux

package load

import "time"

// exactSleep returns at t, as exactly as the runtime can.
func exactSleep(t time.Time) { time.Sleep(time.Until(t)) }
