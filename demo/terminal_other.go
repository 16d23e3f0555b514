//go:build !linux && !darwin

package demo

import "os"

// TerminalRows returns false: on this system nothing is known of terminals.
func TerminalRows(*os.File) (rows int, ok bool) { return 0, false }
