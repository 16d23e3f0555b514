//go:build e2e && !linux

package e2e

import "syscall"

// dieWithParent asks for nothing: only Linux ends a child with its parent.
func dieWithParent() *syscall.SysProcAttr { return nil }
