package control

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"
)

// limitsChange returns the change of a command about limits:
//
//	apply NAME [if=V]           applies the rules below, of domain d, or of the
//	                            one that a line begins with
//	rollback NAME V [if=V]      applies the rules of a version
//	set NAME RULE for=D [wait=D] [from=D] [requests=N] [budget=PPM] [mode=M] [if=V]
//	unset NAME RULE
//	block NAME KEY for=D, reset NAME KEY [if=V] [from=D], unblock NAME KEY
//	                            a key is a number; from is the virtual time
//	adopt NAME                  adopts the files of the daemon
//	emergency NAME RULE|key=K for=D [requests=N] [mode=M] [block]
//	limits NAME                 prints the limits that a daemon uses, and what
//	                            pending ones wait for
func (s *script) limitsChange(d *datadriven.TestData, args []string) *LimitsChange {
	switch d.Cmd {
	case "apply":
		set, err := NewRuleSet(ruleFiles(d.Input))
		if err != nil {
			d.Fatalf(s.t, "%v", err)
		}
		return &LimitsChange{Rules: &RulesChange{Set: set, If: s.version(d, "if")}}
	case "rollback":
		v := s.indexed(d, args[1])
		return &LimitsChange{Rules: &RulesChange{Rollback: &v, If: s.version(d, "if")}}
	case "adopt":
		c, err := s.w.find(args[0]).node.Limits().Adoption()
		if err != nil {
			d.Fatalf(s.t, "%v", err)
		}
		return c
	}
	o := OverrideChange{If: s.version(d, "if"), Unset: d.Cmd == "unset" || d.Cmd == "unblock"}
	o.For = s.duration(d, "for", 0).Milliseconds()
	o.From = s.duration(d, "from", 0).Milliseconds()
	if d.Cmd == "set" || d.Cmd == "unset" {
		o.Rule = strings.ReplaceAll(args[1], ">", " > ")
		o.Setting = s.setting(d)
	} else {
		o.Key = key(args[1])
		o.Block, o.Reset = d.Cmd == "block", d.Cmd == "reset"
	}
	return &LimitsChange{Override: &o}
}

// ruleFiles returns a file for each domain of some rules.
func ruleFiles(text string) []RuleFile {
	by := map[string][]string{}
	for _, line := range strings.Split(text, "\n") {
		name, rule, is := strings.Cut(line, ": ")
		if !is {
			name, rule = "d", line
		}
		by[name] = append(by[name], rule)
	}
	var out []RuleFile
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, RuleFile{Name: name, Text: strings.Join(by[name], "\n")})
	}
	return out
}

// key returns a hash for a number.
func key(number string) string { return fmt.Sprintf("%016s", number) }

func (s *script) setting(d *datadriven.TestData) Setting {
	number := func(name string) *uint32 {
		v := values(d, name)
		if v == nil {
			return nil
		}
		n, err := strconv.ParseUint(v[0], 10, 32)
		if err != nil {
			d.Fatalf(s.t, "%v", err)
		}
		return new(uint32(n))
	}
	out := Setting{Requests: number("requests"), Budget: number("budget")}
	if v := values(d, "mode"); v != nil {
		out.Mode = Mode(v[0])
	}
	return out
}

// version returns the version of an argument, nil for none.
func (s *script) version(d *datadriven.TestData, name string) *Version {
	v := values(d, name)
	if v == nil {
		return nil
	}
	out := s.indexed(d, v[0])
	return &out
}

// indexed returns the version of the present recovery with an index, or the
// zero version for 0.
func (s *script) indexed(d *datadriven.TestData, text string) Version {
	index, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		d.Fatalf(s.t, "%v", err)
	}
	if index == 0 {
		return Version{}
	}
	for _, m := range s.w.machines {
		if m.up && m.node.Record() != nil {
			return Version{m.node.Record().Version.Recovery, index}
		}
	}
	return Version{}
}

func (s *script) emergency(d *datadriven.TestData, args []string) string {
	m := s.w.find(args[0])
	e := Emergency{Setting: s.setting(d), Author: "operator", Until: m.wall(s.w) + s.duration(d, "for", 0).Milliseconds()}
	if k := values(d, "key"); k != nil {
		e.Key, e.Block = key(k[0]), slices.Contains(args, "block")
	} else {
		e.Rule = args[1]
	}
	_, err := m.node.Limits().SubmitEmergency(e)
	s.run(time.Second)
	return result(err)
}

// limits prints the limits that a daemon uses.
func (s *script) limits(m *machine) string {
	e, err := m.node.Limits().Effective(m.wall(s.w), math.MaxInt64)
	if err != nil {
		return err.Error()
	}
	out := describeSet(e.Set)
	domains, err := m.node.Limits().Domains()
	if err != nil {
		return err.Error()
	}
	for _, o := range domains {
		if o.Overruled {
			out += fmt.Sprintf("files do not count in %s\n", o.Domain)
		}
	}
	for _, k := range e.Keys {
		out += "key " + strings.TrimLeft(k.Key, "0")
		if k.Blocked {
			out += " blocked"
		}
		if k.Reset != (Version{}) {
			out += fmt.Sprintf(" reset by version %v", k.Reset)
		}
		out += "\n"
	}
	if e.Next != math.MaxInt64 {
		out += fmt.Sprintf("changes at %s\n", when(e.Next))
	}
	state := m.node.Status()
	if state.Pending != (Version{}) {
		out += fmt.Sprintf("version %v is pending\n", state.Pending)
	}
	for _, w := range state.Waits {
		out += "waits for " + w + "\n"
	}
	return out
}
