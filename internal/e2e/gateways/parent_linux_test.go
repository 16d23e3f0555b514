//go:build e2e

package gateways

import "syscall"

// dieWithParent has the kernel end a child when the thread that started it
// ends.
func dieWithParent(s syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: s} }
