//go:build e2e && !linux

package gateways

import "syscall"

func dieWithParent(syscall.Signal) *syscall.SysProcAttr { return nil }
