package main

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"
)

// dieWithParent has the kernel kill a child when the thread that started it
// ends.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// clockThreadCPU is the clock of the CPU time of the calling thread.
const clockThreadCPU = 3

// threadTime returns the CPU time of the calling thread.
func threadTime() time.Duration {
	// It cannot fail with these arguments.
	t, _ := readClock(clockThreadCPU)
	return t
}

// processTime returns the CPU time of all threads of a process.
func processTime(pid int) (time.Duration, error) {
	// See clock_getcpuclockid(3).
	const clockSched = 2
	return readClock(uintptr(^pid<<3 | clockSched))
}

// readClock returns the reading of a clock of the kernel.
func readClock(clock uintptr) (time.Duration, error) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0, fmt.Errorf("reading clock %#x: %w", clock, errno)
	}
	return time.Duration(ts.Nano()), nil
}

// tmpfsMagic is the type of a file system that keeps files in memory.
const tmpfsMagic = 0x01021994

// inMemory reports whether the files of a folder stay in memory.
func inMemory(dir string) bool {
	var fs syscall.Statfs_t
	return syscall.Statfs(dir, &fs) == nil && fs.Type == tmpfsMagic
}
