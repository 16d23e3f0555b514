package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// CheckState returns an error if the folder of the durable state is not usable,
// or if others can change what is in it: "state.dir: PROBLEM". Warnings have
// the same form. A daemon that starts makes a missing folder, and has no
// warning for it.
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
	return c.CheckStateFiles()
}

// maxStateFiles bounds the files of a folder that are looked at. A daemon has
// some ten.
const maxStateFiles = 1_000

// CheckStateFiles returns an error if all users can change the folder of the
// state or its files, and for a link among them: through it the daemon would
// read a file elsewhere. A group that can write gives a warning, since volumes
// of Kubernetes have one (fsGroup), and so does another owner. A folder that is
// not there has no faults.
func (c *Config) CheckStateFiles() (warnings []string, err error) {
	dir := c.State.Dir
	if dir == "" {
		return nil, nil
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("state.dir: %w", pathProblem(dir, err))
	}
	warning, err := checkMode(dir, "0700", info)
	if err != nil {
		return nil, err
	}
	warnings = append(warnings, warning...)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("state.dir: %w", pathProblem(dir, err))
	}
	for _, e := range entries[:min(len(entries), maxStateFiles)] {
		if !stateFile(e.Name()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		info, err := e.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir():
			continue
		case err != nil:
			return nil, fmt.Errorf("state.dir: %w", pathProblem(path, err))
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, fmt.Errorf("state.dir: %s: is a link, and files of state are not: move the file itself here", path)
		case !info.Mode().IsRegular():
			continue
		}
		if warning, err = checkMode(path, "0600", info); err != nil {
			return nil, err
		}
		warnings = append(warnings, warning...)
	}
	return warnings, nil
}

// stateFile reports whether a name is that of a file of state, or of the next
// or former content of one.
func stateFile(name string) bool { return name == "lock" || strings.Contains(name, ".rld") }

// checkMode checks the write permissions of a file or folder of the state.
func checkMode(path, want string, info fs.FileInfo) (warnings []string, err error) {
	mode := info.Mode().Perm()
	switch {
	case mode&0o002 != 0:
		return nil, fmt.Errorf("state.dir: %s: is writable by everybody (mode %04o): chmod %s it", path, mode, want)
	case mode&0o020 != 0:
		warnings = append(warnings, fmt.Sprintf("state.dir: %s: is writable by its group (mode %04o): chmod %s it, "+
			"unless the group is that of this daemon alone", path, mode, want))
	}
	if is, ok := info.Sys().(*syscall.Stat_t); ok && is.Uid != 0 && int(is.Uid) != os.Geteuid() {
		warnings = append(warnings, fmt.Sprintf("state.dir: %s: belongs to user %d, who can change it, and this daemon runs as user %d: chown it",
			path, is.Uid, os.Geteuid()))
	}
	return warnings, nil
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
