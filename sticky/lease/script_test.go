package lease

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/sticky"
)

// TestScripts replays testdata/scripts. A message takes 1 ms in a region and
// 20 ms between regions, a store 2 ms, and nothing is random. The commands:
//
//	world a=3 b=3             starts daemons a1, a2, a3, b1 and so on, with the
//	                          limits below
//	owner KEY [DAEMON]        prints the owner of a key, by the view of a daemon
//	ask DAEMON KEY [hits=N] [times=N] [every=D]
//	                          sends calls
//	run D                     advances time
//	quiet D                   advances time, and prints nothing
//	lose [TEXT]               loses the messages whose text has TEXT
//	keep                      loses no more messages
//	crash DAEMON              stops a daemon
//	restart DAEMON            starts it again, with its disk
//	dead DAEMON OTHER         makes a daemon believe that another one is dead
//	alive DAEMON OTHER        ends that
//	breaker DAEMON OTHER      opens the daemon's circuit breaker to another one
//	allot N                   gives each region N hits of a limit's total
//	show KEY                  prints the leases and the owner state of a key
//
// OWNER stands for the owner of the key that the latest owner command named,
// LESSEE for another daemon of its region. All commands print the messages
// that are sent and the calls that are decided. Accepted is printed only if a
// voter refuses, and Accept once for all voters.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := &script{world: world{t: t, hashing: "205"}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			s.out.Reset()
			s.run(d)
			return s.out.String()
		})
	})
}

// script is a world that prints its messages and calls.
type script struct {
	world
	out           strings.Builder
	quiet         bool
	loses         []string
	owner, lessee *daemon
	allotted      allotted
	accepts       string // the latest Accept printed
}

// allotted is an equal number of hits for each region.
type allotted struct{ hits, version uint64 }

func (a *allotted) Version() uint64 { return a.version }

func (a *allotted) RegionAllotment(_, total uint64, _, _ int64) (uint64, epoch.Reason) {
	return min(a.hits, total), epoch.ReasonEpoch
}

func (s *script) run(d *datadriven.TestData) {
	var args []string
	options := map[string]string{}
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 1 {
			options[a.Key] = a.Vals[0]
		} else {
			args = append(args, a.Key)
		}
	}
	switch d.Cmd {
	case "world":
		s.create(d)
	case "owner":
		view := s.daemons[slices.IndexFunc(s.daemons, func(d *daemon) bool { return d.table != nil })]
		if len(args) == 2 {
			view = s.daemon(args[1])
		}
		h := s.hit(descriptor(args[0], "x", 1))
		s.owner, _ = s.ownerOf(view, descriptor(args[0], "x", 1))
		others := s.othersOf(s.owner)
		s.lessee = others[slices.IndexFunc(others, func(d *daemon) bool { return d.table != nil })]
		fmt.Fprintf(&s.out, "owner %s, lessee %s, an owner in each region: %v\n", s.owner.name, s.lessee.name, h.Rule.Limit.HomeInRegion())
	case "ask":
		s.calls(s.daemon(args[0]), args[1], options)
	case "run", "quiet":
		s.quiet = d.Cmd == "quiet"
		s.pass(s.duration(args[0]))
		s.quiet = false
	case "lose":
		s.loses = append(s.loses, strings.Join(args, " "))
	case "keep":
		s.loses = nil
	case "crash":
		s.crash(s.daemon(args[0]))
	case "restart":
		s.restart(s.daemon(args[0]), false)
	case "dead", "alive":
		s.daemon(args[0]).believedDead[s.daemon(args[1]).name] = d.Cmd == "dead"
		s.members()
	case "breaker":
		s.daemon(args[0]).openBreakers[s.daemon(args[1]).id] = true
	case "allot":
		s.allotted = allotted{s.number(args[0]), s.allotted.version + 1}
	case "show":
		s.show(args[0])
	default:
		d.Fatalf(s.t, "unknown command %s", d.Cmd)
	}
}

func (s *script) create(d *datadriven.TestData) {
	var sizes []int
	for _, a := range d.CmdArgs {
		sizes = append(sizes, int(s.number(a.Vals[0])))
	}
	s.fsync, s.link, s.decided = 2*time.Millisecond, s.print, s.printCall
	s.allotments = func() Allotments { return &s.allotted }
	s.init(1, d.Input, sizes...)
	s.pass(15 * time.Second) // all acceptors know the layout
	s.out.Reset()
}

func (s *script) number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *script) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *script) daemon(name string) *daemon {
	switch name {
	case "OWNER":
		return s.owner
	case "LESSEE":
		return s.lessee
	}
	for _, d := range s.daemons {
		if d.name == name {
			return d
		}
	}
	s.t.Fatalf("no daemon %s", name)
	return nil
}

func (s *script) calls(d *daemon, key string, options map[string]string) {
	hits, times, every := uint64(1), uint64(1), time.Duration(0)
	if v, ok := options["hits"]; ok {
		hits = s.number(v)
	}
	if v, ok := options["times"]; ok {
		times = s.number(v)
	}
	if v, ok := options["every"]; ok {
		every = s.duration(v)
	}
	for range times {
		s.ask(d, descriptor(key, "x", hits))
		s.pass(every)
	}
}

func (s *script) printf(format string, args ...any) {
	if !s.quiet {
		fmt.Fprintf(&s.out, format+"\n", args...)
	}
}

// printCall prints the decision of a call.
func (s *script) printCall(c *call) {
	a, r, result := &c.answers[0], c.reports[0], "admitted"
	switch {
	case a.Over() && r.Never:
		result = fmt.Sprintf("denied for good, %d left", r.Remaining)
	case a.Verdict == Denied:
		result = fmt.Sprintf("denied, %d left", r.Remaining)
	case a.Verdict == Failed:
		result = "denied by on_failure"
	case !a.Granted():
		result = "admitted by on_failure"
	default:
		result = fmt.Sprintf("admitted, %d left", r.Remaining)
	}
	if a.Failure != NoFailure {
		result += ", degraded: " + [...]string{"", "owner unreachable", "breaker open"}[a.Failure]
	}
	if c.ticket != 0 {
		result += ", after a wait"
	}
	s.printf("%s: %s", c.d.name, result)
}

// print prints the items of a message, and loses it if a lose command names it.
func (s *script) print(from *daemon, m *sticky.Message) (delay time.Duration, lost bool) {
	to := s.name(m)
	lose := func(text string) bool {
		for _, l := range s.loses {
			lost = lost || to != from && strings.Contains(text, l)
		}
		if lost {
			s.printf("%s (lost)", text)
		}
		return lost
	}
	route := fmt.Sprintf("%s to %s: ", from.name, to.name)
	for i := range m.Requests {
		if text := route + requestText(&m.Requests[i]); !lose(text) {
			s.printf("%s", text)
		}
	}
	for i := range m.Grants {
		if text := route + grantText(&m.Grants[i]); !lose(text) {
			s.printf("%s", text)
		}
	}
	for i := range m.Accepts {
		a := &m.Accepts[i]
		text := fmt.Sprintf("%s: accept, round %d, up to %s", from.name, a.Ballot.Round, amountsText(a.Watermarks))
		if !lose(route+"accept") && text != s.accepts {
			s.printf("%s", text)
			s.accepts = text
		}
	}
	for i := range m.Accepted {
		if a := &m.Accepted[i]; !lose(route+"accepted") && !a.OK {
			s.printf("%srefused: %v, round %d holds up to %s", route, a.Reason, a.Promised.Round, amountsText(a.Held))
		}
	}
	delay = time.Millisecond
	if from.region != to.region {
		delay = 20 * time.Millisecond
	}
	return delay, lost
}

func (s *script) name(m *sticky.Message) *daemon {
	for _, d := range s.daemons {
		if d.id == m.To {
			return d
		}
	}
	return &daemon{name: "a daemon that is gone"}
}

func requestText(q *sticky.LeaseRequest) string {
	text := fmt.Sprintf("request %d, want %d", q.ID, q.Want)
	if q.ID == 0 {
		return fmt.Sprintf("return, %d in all", q.Returned)
	}
	if q.Extra > 0 {
		text += fmt.Sprintf(", extra %d", q.Extra)
	}
	if q.Prefetch > 0 {
		text += fmt.Sprintf(", prefetch %d", q.Prefetch)
	}
	if q.Returned > 0 {
		text += fmt.Sprintf(", returned %d in all", q.Returned)
	}
	if q.Reserve {
		text += ", of the regional reserve"
	}
	return text
}

func grantText(g *sticky.LeaseGrant) string {
	switch {
	case g.Reason != sticky.NoReason:
		return fmt.Sprintf("no answer to %d: %v", g.ID, g.Reason)
	case g.Denied:
		return fmt.Sprintf("denial %d, total %d, %d left", g.ID, g.Total, g.Remaining)
	}
	return fmt.Sprintf("grant %d, total %d, %d left, keep %d", g.ID, g.Total, g.Remaining, g.Keep)
}

func amountsText(m sticky.Watermarks) string {
	var amounts []string
	for _, x := range m {
		amounts = append(amounts, strconv.FormatUint(x.Amount, 10))
	}
	return strings.Join(amounts, ", ")
}

// show prints the state of a key at all daemons.
func (s *script) show(key string) {
	h := s.hit(descriptor(key, "x", 1))
	for _, d := range s.daemons {
		for _, reserve := range [...]bool{false, true} {
			if d.table == nil {
				continue
			}
			x := d.table.Explain(s.clocks(d), h.Key, h.Rule, reserve)
			if x == nil {
				continue
			}
			name := d.name
			if reserve {
				name += ", regional reserve"
			}
			if l := x.Lease; l != nil {
				s.printf("%s: lease of %d, %d used, %d returned, %d left", name, l.Granted, l.Used, l.Returned, l.Left)
			}
			if o := x.Owned; o != nil {
				s.printf("%s: owner, round %d, %d consumed of %d, watermark %d", name, o.Ballot.Round, o.Consumed, x.Limit.Requests, o.Watermark)
			}
		}
	}
	s.printf("%d hits admitted in all", s.sum(h.Key))
}
