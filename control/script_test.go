package control

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/georld/rld/control/revocation"
)

// TestScripts replays testdata/scripts: daemons, their disks and the network
// between them, in virtual time. The region of a daemon is the part of its name
// before "-". Its second id is printed as the name with a prime, and so on.
// Other random numbers are printed as #1, #2 and so on. The commands:
//
//	daemons NAME... [founders=(NAME...)] [strict]
//	                          starts daemons; NAME/diskless stores nothing;
//	                          strict gives them acceptors of strict keys
//	init NAME REGION...       asks for a cluster of equal regions
//	lead NAME                 makes a voter the leader
//	run D                     time passes; prints the events
//	until COND... [most=D]    time passes until conditions hold: begun, leader,
//	                          equal, confirmed, in-force, voters=(NAME...),
//	                          learner=NAME, strict=(NAME...): the strict voters
//	cut from=(...) to=(...) [both]
//	                          messages are lost, in one direction or in both;
//	                          names, regions, or all
//	heal                      ends all cuts
//	crash NAME..., start NAME...
//	reads NAME... format=N    daemons that are down are those of another version
//	refused NAME              prints why a daemon does not start
//	format NAME               prints the formats of its status
//	lose-disk NAME            the disk of a daemon that is down becomes empty
//	copy-disk NAME            copies what the disk holds
//	old-disk NAME             puts the copy back at a daemon that is down
//	clone-disk NAME NAME      gives the second a copy of the disk of the first
//	pause NAME..., resume NAME...
//	                          a process stops, and goes on
//	keep NAME..., use NAME... a daemon goes on with the limits that it has, and
//	                          uses those of its record again
//	files NAME...             gives daemons the rules below in files
//	compact-disk NAME         replaces what the disk holds by a snapshot
//	fail-disk NAME, mend-disk NAME
//	                          writes fail, and succeed again
//	corrupt NAME              shifts a part of a region's weight to another one,
//	                          in the record of one daemon
//	submit NAME [id=X] [for=D] note TEXT | add R N | weight R N | drain R |
//	  remove R | dead NAME | strict R NAME... [stopped] [force] | hold | unhold
//	                          submits a command and waits for the result
//	load D [changes=N] [gap=D]
//	                          daemons submit commands all the time; prints
//	                          whether the leader changed more often, or longer
//	                          passed between two entries
//	apply NAME [if=V], rollback NAME V [if=V], set, unset, block, unblock, reset,
//	  adopt, emergency, limits: see limitsCommand
//	recover NAME [behind] [stopped] [yield]: begins the next recovery
//	word NAME [dry]: the operator's that its region was not removed
//	leave NAME                the daemon gives its vote away
//	record NAME               prints the record of a daemon
//	layouts NAME              prints its layouts of strict keys
//	epochs NAME               prints its epochs of regions and founders
//	settled NAME              its rights agent states that the newest is settled
//	status                    prints the state of all daemons
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := &script{t: t, ids: map[ID]string{}, numbers: map[string]string{}, commands: map[string]Number{}, copies: map[*machine][][]byte{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return s.command(t, d)
		})
	})
}

type script struct {
	t        *testing.T
	w        *world
	ids      map[ID]string     // names of ids
	numbers  map[string]string // names of other random numbers
	commands map[string]Number // numbers of commands by their names
	cuts     [][2][]string
	copies   map[*machine][][]byte
	printed  int // events
}

// words returns the arguments without a value.
func words(d *datadriven.TestData) []string {
	var out []string
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 {
			out = append(out, a.Key)
		}
	}
	return out
}

// values returns the values of an argument.
func values(d *datadriven.TestData, key string) []string {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return a.Vals
		}
	}
	return nil
}

func (s *script) duration(d *datadriven.TestData, key string, otherwise time.Duration) time.Duration {
	v := values(d, key)
	if v == nil {
		return otherwise
	}
	return s.parse(d, v[0])
}

func (s *script) parse(d *datadriven.TestData, text string) time.Duration {
	v, err := time.ParseDuration(text)
	if err != nil {
		d.Fatalf(s.t, "%v", err)
	}
	return v
}

func (s *script) command(t *testing.T, d *datadriven.TestData) string {
	s.t = t
	out := ""
	args := words(d)
	switch d.Cmd {
	case "daemons":
		s.daemons(args, values(d, "founders"))
	case "init":
		out = result(s.w.find(args[0]).node.Init(even(args[1:]...), true))
	case "lead":
		out = s.lead(s.w.find(args[0]))
	case "run":
		s.run(s.parse(d, args[0]))
	case "until":
		out = s.until(d)
	case "cut":
		s.cut(d)
	case "heal":
		s.cuts = nil
	case "submit":
		out = s.submit(d, args)
	case "load":
		out = s.load(d)
	case "apply", "rollback", "set", "unset", "block", "unblock", "reset", "adopt":
		out = s.await(d, s.w.find(args[0]), Request{Author: "operator", Change: Change{Limits: s.limitsChange(d, args)}})
	case "emergency":
		out = s.emergency(d, args)
	case "limits":
		return s.limits(s.w.find(args[0]))
	case "recover":
		q := RecoverRequest{Behind: slices.Contains(args, "behind"), Stopped: slices.Contains(args, "stopped"), Yield: slices.Contains(args, "yield")}
		out = result(s.w.find(args[0]).node.Recover(q))
	case "word":
		out = result(s.w.find(args[0]).node.Resume("operator", "", slices.Contains(args, "dry")))
	case "clone-disk":
		s.w.find(args[1]).disk = slices.Clone(s.w.find(args[0]).disk)
	case "record":
		return s.record(s.w.find(args[0]).node.Record())
	case "layouts":
		return layoutsText(&s.w.find(args[0]).node.Record().Layouts)
	case "epochs":
		return s.epochs(s.w.find(args[0]).node.Record())
	case "settled":
		m := s.w.find(args[0])
		newest, err := m.node.Record().Newest()
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		RightsOf(m.node).Settled(newest.ID)
	case "refused":
		if _, err := Recover(s.w.find(args[0]).disk, s.w.config(s.w.find(args[0]))); err != nil {
			return err.Error()
		}
	case "format":
		return s.format(s.w.find(args[0]).node)
	case "status":
		return s.status()
	default:
		for _, name := range args {
			s.machine(d, s.w.find(name))
		}
	}
	if out += s.events(); out == "" {
		return "ok"
	}
	return s.named(out)
}

// result describes the result of a command.
func result(err error) string {
	if err != nil {
		return "refused: " + strings.TrimPrefix(err.Error(), "control: ") + "\n"
	}
	return ""
}

func (s *script) daemons(args, founders []string) {
	if s.w == nil {
		s.w = newWorld(s.t, 1, founders...)
		s.w.cut = func(from, to *machine) bool {
			return slices.ContainsFunc(s.cuts, func(c [2][]string) bool { return among(c[0], from) && among(c[1], to) })
		}
	}
	for _, arg := range args {
		if arg == "strict" { // before the first daemon
			s.w.layouts = true
			continue
		}
		name, diskless := strings.CutSuffix(arg, "/diskless")
		region, _, _ := strings.Cut(name, "-")
		s.w.add(region, name, !diskless)
	}
}

// among reports whether a list names a daemon.
func among(list []string, m *machine) bool {
	return slices.ContainsFunc(list, func(name string) bool { return name == m.name || name == m.region || name == "all" })
}

func (s *script) cut(d *datadriven.TestData) {
	from, to := values(d, "from"), values(d, "to")
	s.cuts = append(s.cuts, [2][]string{from, to})
	if d.HasArg("both") {
		s.cuts = append(s.cuts, [2][]string{to, from})
	}
}

// machine does a command about one daemon.
func (s *script) machine(d *datadriven.TestData, m *machine) {
	switch d.Cmd {
	case "crash":
		s.w.crash(m)
	case "start":
		s.w.start(m)
	case "lose-disk", "old-disk":
		if m.up {
			d.Fatalf(s.t, "%s is up", m.name)
		}
		m.disk = slices.Clone(s.copies[m])
		if d.Cmd == "lose-disk" {
			m.disk, m.acceptor = nil, acceptorModel{store: uint64(s.w.now)}
		}
	case "copy-disk":
		s.copies[m] = slices.Clone(m.disk)
	case "compact-disk":
		for m.writing != nil {
			s.run(tick)
		}
		m.disk = m.node.Snapshot()
	case "fail-disk", "mend-disk":
		m.failing = d.Cmd == "fail-disk"
	case "corrupt":
		r, err := DecodeRecord(m.node.record.Encode(), Format)
		if err != nil {
			d.Fatalf(s.t, "%v", err)
		}
		r.Regions[0].Horizon++
		m.node.record, m.corrupt = r, true
	case "reads":
		d.ScanArgs(s.t, "format", &m.format)
	case "leave":
		m.node.Leave()
	case "pause", "resume":
		m.paused = d.Cmd == "pause"
	case "keep", "use":
		m.keeps = d.Cmd == "keep"
	case "files":
		m.files = nil
		if d.Input != "" {
			m.files = ruleFiles(d.Input)
		}
		m.readFiles(s.t)
	default:
		d.Fatalf(s.t, "no command %s", d.Cmd)
	}
}

// run advances time, and names the ids that are new.
func (s *script) run(d time.Duration) {
	for end := s.w.now + d; s.w.now < end; {
		s.w.run(tick)
		for _, m := range s.w.machines {
			if m.up && s.ids[m.node.ID()] == "" {
				primes := 0
				for _, name := range s.ids {
					if strings.TrimRight(name, "'") == m.name {
						primes++
					}
				}
				s.ids[m.node.ID()] = m.name + strings.Repeat("'", primes)
			}
		}
	}
}

// lead makes a voter the leader, as if the one that leads now handed over after
// a second.
func (s *script) lead(m *machine) string {
	for i := range 3 * 400 {
		if m.node.Leads() {
			return ""
		}
		for _, o := range s.w.machines {
			if i%400 < 150 && o != m && o.up && o.node.raft != nil {
				o.node.raft.due = max(o.node.raft.due, s.w.now+time.Second)
			}
		}
		if v := m.node.raft; v != nil && i%400 == 50 {
			kind, from, to, term := raftpb.MsgTimeoutNow, uint64(v.id), uint64(v.id), v.raw.BasicStatus().GetTerm()
			_ = v.raw.Step(&raftpb.Message{Type: &kind, From: &from, To: &to, Term: &term})
		}
		s.run(tick)
	}
	return m.name + " does not lead\n"
}

// until runs until conditions hold.
func (s *script) until(d *datadriven.TestData) string {
	most := s.duration(d, "most", 30*time.Second)
	for end := s.w.now + most; s.w.now < end; s.run(tick) {
		if s.holds(d) == "" {
			return ""
		}
	}
	return fmt.Sprintf("not %s after %v\n", s.holds(d), most)
}

// holds returns the first condition that does not hold.
func (s *script) holds(d *datadriven.TestData) string {
	for _, a := range d.CmdArgs {
		ok := true
		switch a.Key {
		case "most":
		case "begun":
			ok = s.all(func(m *machine) bool { return m.node.Record() != nil })
		case "in-force":
			ok = s.all(func(m *machine) bool {
				return m.node.Record() != nil && m.node.Record().Limits.Pending() == (Version{})
			})
		case "leader":
			ok = s.w.leader() != nil
		case "equal":
			ok = s.w.equal()
		case "confirmed":
			ok = s.all(func(m *machine) bool { return m.node.Record() != nil && !m.node.Starting() })
		case "voters":
			ok = s.all(func(m *machine) bool {
				r := m.node.Record()
				return r != nil && len(r.Voters) == r.Voting() && slices.Equal(s.voters(r), slices.Sorted(slices.Values(a.Vals)))
			})
		case "strict":
			ok = s.all(func(m *machine) bool {
				r := m.node.Record()
				return r != nil && r.Layouts.Announced == nil && r.Layouts.Active != nil && slices.Equal(strictNames(r.Layouts.Active), a.Vals)
			})
		case "learner":
			ok = s.all(func(m *machine) bool {
				r := m.node.Record()
				return r != nil && slices.Contains(s.voters(r), a.Vals[0]+" (learner)")
			})
		default:
			d.Fatalf(s.t, "no condition %s", a.Key)
		}
		if !ok {
			return a.String()
		}
	}
	return ""
}

// all reports whether a condition holds at all daemons that are up.
func (s *script) all(ok func(*machine) bool) bool {
	return !slices.ContainsFunc(s.w.machines, func(m *machine) bool { return m.up && !ok(m) })
}

// voters returns the names of the voters of a record.
func (s *script) voters(r *Record) []string {
	var out []string
	for _, v := range r.Voters {
		name := cmp.Or(s.ids[v.Daemon], v.Daemon.String())
		if v.Learner {
			name += " (learner)"
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// submit submits a command of submit.
func (s *script) submit(d *datadriven.TestData, args []string) string {
	m, what := s.w.find(args[0]), slices.DeleteFunc(slices.Clone(args[1:]), func(a string) bool { return a == "stopped" || a == "force" })
	stopped, force := slices.Contains(args, "stopped"), slices.Contains(args, "force")
	r := Request{Author: "operator"}
	if what[0] == "dead" {
		if of, is := strings.CutPrefix(what[1], "member:"); is {
			what[1] = fmt.Sprintf("%016x", s.w.find(of).node.ID().Member())
		}
		id, err := RightsOf(m.node).DaemonID(what[1])
		if err != nil {
			return result(err)
		}
		r.Dead = &DeadID{ID: id, Stopped: true}
	} else if op := FormatOp(what[0]); op == HoldFormat || op == UnholdFormat {
		r.Change.Format = &FormatChange{Op: op}
	} else if what[0] == "strict" {
		r.Layouts = &LayoutChange{Recover: &StrictRecovery{Stopped: what[2:], LostVoters: LostVoters{Region: what[1]}}}
	} else if what[0] == "revoke" || what[0] == "unrevoke" {
		name, err := revocation.Parse(what[1])
		if err != nil {
			return result(err)
		}
		r.Revoke = &revocation.Change{Name: name, Undo: what[0] == "unrevoke"}
	} else if what[0] == "note" {
		r.Note = &Note{Text: strings.Join(what[1:], " ")}
	} else {
		r.Region = &RegionChange{Op: RegionOp(what[0]), Name: what[1], Stopped: stopped, Force: force}
		if len(what) > 2 {
			weight, err := strconv.ParseUint(what[2], 10, 32)
			if err != nil {
				d.Fatalf(s.t, "%v", err)
			}
			r.Region.Weight = uint32(weight)
		}
	}
	return s.await(d, m, r)
}

// await submits a command and waits for its result.
func (s *script) await(d *datadriven.TestData, m *machine, r Request) string {
	name := values(d, "id")
	if name != nil {
		r.ID = s.commands[name[0]]
	}
	id, err := m.node.Submit(r)
	if err != nil {
		return result(err)
	}
	if name != nil {
		s.commands[name[0]] = id
	}
	wait := "wait"
	if d.Cmd == "submit" {
		wait = "for"
	}
	most := s.duration(d, wait, 30*time.Second)
	for end := s.w.now + most; s.w.now < end; s.run(tick) {
		i := slices.IndexFunc(m.results, func(r Result) bool { return r.ID == id })
		if i < 0 {
			continue
		}
		out := "done\n"
		if err := m.results[i].Err; err != nil {
			out = result(err)
		}
		m.results = slices.Delete(m.results, i, i+1)
		s.run(time.Second)
		return out
	}
	m.node.Forget(id)
	return fmt.Sprintf("no result after %v\n", most)
}

// load lets all daemons submit commands, one at a time each.
func (s *script) load(d *datadriven.TestData) string {
	changes, gap := s.w.load(s.parse(d, words(d)[0]), func() { s.run(tick) })
	for _, v := range values(d, "changes") {
		if v == strconv.Itoa(changes) || changes < int(v[0]-'0') {
			s.printed = len(s.w.events)
			if most := s.duration(d, "gap", 0); gap <= most {
				return fmt.Sprintf("at most %s changes of the leader, and %v between two entries\n", v, most)
			}
		}
	}
	return fmt.Sprintf("%d changes of the leader, and up to %v between two entries\n", changes, gap)
}
