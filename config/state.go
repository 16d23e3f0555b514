package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// State is where a daemon of a cluster keeps what must outlive a restart.
type State struct {
	// Dir is the folder of rights.rld, strict.rld and control.rld: the promises
	// about rights, the watermarks of strict keys, and the control log. It must
	// outlive restarts and belong to one daemon. With "" the daemon has no vote
	// in the control log, and unless it is Diskless it holds no rights, and
	// rules that need them are rejected. With a folder Strict.Replicas is
	// mandatory.
	Dir string
	// Diskless declares that the daemon has no Dir on purpose: it holds rights
	// that the durable daemons of its region extend. From a flag or a variable
	// it also drops the Dir that the file gives, so that all daemons of a
	// region share the file.
	Diskless bool
}

// Control is the part of a daemon in the control log.
type Control struct {
	// Voter is whether the daemon does anything but vote.
	Voter Voter
}

// Voter is a kind of voter of the control log.
type Voter string

// The kinds of voters.
const (
	// VoterAuto decides calls, and votes if the leader of the log chooses it.
	VoterAuto Voter = "auto"
	// VoterOnly is a witness: it votes, and decides nothing. Its region has no
	// rights and no weight, and none but witnesses.
	VoterOnly Voter = "only"
)

// Witness reports whether the daemon only votes.
func (c *Config) Witness() bool { return c.Region != "" && c.Control.Voter == VoterOnly }

// witness checks the settings of a daemon that only votes.
func (v *validator) witness(c *Config) {
	const field = "control.voter"
	switch {
	case !c.Witness():
	case c.State.Dir == "":
		v.fault(field, "is only, and this daemon has no folder for its votes: give it a state.dir, on a disk that outlives restarts")
	case len(c.Strict.Replicas) > 0:
		v.faultFor("strict.replicas", field, "names daemons of the region, and %s is only: a witness has no strict keys, and its region "+
			"no other daemons; remove strict.replicas, or %s", field, field)
	}
}

// diskless drops the folder that the file gives, where a stronger source
// declares the daemon diskless.
func (l *loader) diskless() {
	if _, inFile := l.nodes["state.diskless"]; inFile || !l.cfg.State.Diskless {
		return
	}
	const name = "state.dir"
	if _, inFile := l.nodes[name]; inFile {
		l.cfg.State.Dir = ""
		delete(l.origins, name)
		delete(l.nodes, name)
	}
}

func (v *validator) state(c *Config) {
	if c.State.Diskless && c.State.Dir != "" {
		v.faultFor("state.diskless", "state.dir", "is true and state.dir is %s: give one of them", quote(c.State.Dir))
	}
}

// CheckState returns an error if the folder of the durable state is not usable:
// "state.dir: PROBLEM". The warning of a missing one that a daemon makes has
// the same form.
func (c *Config) CheckState() (warnings []string, err error) {
	dir := c.State.Dir
	if dir == "" {
		return nil, nil
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist) && canMake(dir):
		return []string{fmt.Sprintf("state.dir: %s: no such folder: the daemon makes it; use a disk that outlives restarts", dir)}, nil
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("state.dir: %s: no such folder, and this user cannot make it: make it, on a disk that outlives restarts", dir)
	case err != nil:
		return nil, fmt.Errorf("state.dir: %w", pathProblem(dir, err))
	case !info.IsDir():
		return nil, fmt.Errorf("state.dir: %s: is a %s, not a folder", dir, kindOf(info.Mode()))
	}
	return nil, nil
}

// canMake reports whether this user can make a missing folder: the lowest
// folder above it that is there is writable.
func canMake(dir string) bool {
	const writeAndEnter = 2 | 1
	for {
		above := filepath.Dir(dir)
		if _, err := os.Stat(above); err == nil || above == dir {
			return err == nil && syscall.Access(above, writeAndEnter) == nil
		}
		dir = above
	}
}

// kindOf is kind that knows files, too.
func kindOf(m os.FileMode) string {
	if m.IsRegular() {
		return "file"
	}
	return kind(m)
}
