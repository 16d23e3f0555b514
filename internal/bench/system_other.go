//go:build !linux

package main

import (
	"errors"
	"syscall"
	"time"
)

// dieWithParent does nothing here: a child of ours ends with its input, and
// rld when bench does.
func dieWithParent() *syscall.SysProcAttr { return nil }

// started is when the process started.
var started = time.Now()

// threadTime returns the time since the process started: that of one thread is
// unknown here.
func threadTime() time.Duration { return time.Since(started) }

// processTime fails: the CPU time of another process is unknown here.
func processTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

// inMemory returns false: the file system is unknown here.
func inMemory(string) bool { return false }
