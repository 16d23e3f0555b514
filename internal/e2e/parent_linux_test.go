//go:build e2e

package e2e

import "syscall"

// dieWithParent has the kernel kill a child when the thread that started it
// ends, so that no daemon outlives a test that is killed.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
