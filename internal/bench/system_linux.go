package main

import (
	"runtime"
	"syscall"
	"time"
)

// dieWithParent has the kernel kill a child when the thread that started it
// ends.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// prSetTimerSlack is the prctl option that says by how many nanoseconds the
// kernel may delay a thread's timers to join them; 50 µs without it.
const prSetTimerSlack = 29

// sleepUntil returns at t, some microseconds late. A timer of the runtime may
// be a millisecond late, which would be larger than what is measured.
func sleepUntil(t time.Time) {
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
		// An interrupted sleep is taken up again with what is left then.
		_ = syscall.Nanosleep(&ts, nil)
	}
}

// tmpfsMagic is the type of a file system that keeps files in memory.
const tmpfsMagic = 0x01021994

// inMemory reports whether what is written to a folder stays in memory.
func inMemory(dir string) bool {
	var fs syscall.Statfs_t
	return syscall.Statfs(dir, &fs) == nil && fs.Type == tmpfsMagic
}
