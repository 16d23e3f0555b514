package load

import (
	"runtime"
	"syscall"
	"time"
)

// prSetTimerSlack is the prctl option for the nanoseconds by which the kernel
// may delay a thread's timers to join them; the default is 50 µs.
const prSetTimerSlack = 29

// exactSleep returns at t, some microseconds late. A timer of the runtime may
// be a millisecond late, more than the measured latencies.
func exactSleep(t time.Time) {
	if time.Until(t) <= 0 {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// It cannot fail with these arguments; if it did, we would be 50 µs late.
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerSlack, 1, 0)
	for {
		left := time.Until(t)
		if left <= 0 {
			return
		}
		ts := syscall.NsecToTimespec(int64(left))
		// An interrupted sleep continues with the time that is left.
		_ = syscall.Nanosleep(&ts, nil)
	}
}
