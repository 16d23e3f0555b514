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

// inMemory returns false: the file system is unknown here.
func inMemory(string) bool { return false }
