//go:build !linux

package main

import (
	"syscall"
	"time"
)

// dieWithParent does nothing here: a child of ours ends with its input, and
// rld when bench does.
func dieWithParent() *syscall.SysProcAttr { return nil }

// sleepUntil returns at t, as exactly as the runtime can.
func sleepUntil(t time.Time) { time.Sleep(time.Until(t)) }

// inMemory cannot tell here, and believes that a folder is on a disk.
func inMemory(string) bool { return false }
