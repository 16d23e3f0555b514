package session

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/georld/rld/rules"
)

// TestScripts replays the conversations of testdata. The commands:
//
//	limit k=v requests=N [window=D] [shadow]  limits a bucket; others are not
//	at T                                      moves the time to T
//	report S                                  stream S reports the buckets of the
//	                                          lines below: k=v,k=v ALLOWED DENIED
//	end S                                     stream S ends
//	used k=v                                  prints the charged hits of the window
//
// at and report print what clients have to do.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{world: &world{limits: map[string]*fakeLimit{}}, streams: map[string]*Session{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(t, d) })
	})
}

type script struct {
	*world
	streams map[string]*Session
	names   []string
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "limit":
		l := &fakeLimit{used: map[time.Duration]uint64{}, shadow: d.HasArg("shadow")}
		var window string
		d.ScanArgs(t, "requests", &l.requests)
		if d.MaybeScanArgs(t, "window", &window) {
			l.window = span(t, window)
		}
		s.limits[parseID(t, d.CmdArgs[0].String()).text()] = l
		return ""
	case "at":
		return s.move(t, span(t, d.CmdArgs[0].Key))
	case "report":
		name := d.CmdArgs[0].Key
		if s.streams[name] == nil {
			s.streams[name], s.names = New(s.world), append(s.names, name)
		}
		var usages []Usage
		for line := range strings.Lines(d.Input) {
			f := strings.Fields(line)
			usages = append(usages, Usage{ID: parseID(t, f[0]), Allowed: number(t, f[1]), Denied: number(t, f[2])})
		}
		out, err := s.streams[name].Report(s.now, usages)
		if err != nil {
			t.Fatal(err)
		}
		return text(name, s.now, out)
	case "end":
		delete(s.streams, d.CmdArgs[0].Key)
		return ""
	case "used":
		l := s.limits[parseID(t, d.CmdArgs[0].String()).text()]
		return fmt.Sprintln(l.used[s.at(l)])
	}
	t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	return ""
}

// move moves the time, and stops where a stream is due.
func (s *script) move(t *testing.T, to time.Duration) string {
	var b strings.Builder
	for {
		next, who := to, ""
		for _, name := range s.names {
			if x := s.streams[name]; x != nil {
				if at, ok := x.Next(); ok && at <= next && (who == "" || at < next) {
					next, who = at, name
				}
			}
		}
		s.now = max(s.now, next)
		if who == "" {
			return b.String()
		}
		out, err := s.streams[who].Tick(s.now)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(text(who, s.now, out))
	}
}

// text prints actions, one a line.
func text(stream string, now time.Duration, actions []Action) string {
	var b strings.Builder
	for _, a := range actions {
		var id []string
		for _, e := range a.ID {
			id = append(id, e.Key+"="+e.Value)
		}
		what := [...]string{"", "allow all", "deny all", "abandon"}[a.Kind]
		if a.Kind == Tokens {
			what = fmt.Sprintf("%d tokens, serial %d", a.Hits, a.Serial)
		}
		fmt.Fprintf(&b, "%v %s %s: %s", now, stream, strings.Join(id, ","), what)
		if a.Kind != Abandon {
			fmt.Fprintf(&b, " for %v", a.TTL)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func parseID(t *testing.T, s string) (id ID) {
	for e := range strings.SplitSeq(s, ",") {
		k, v, ok := strings.Cut(e, "=")
		if !ok {
			t.Fatalf("%q is no entry", e)
		}
		id = append(id, rules.Entry{Key: k, Value: v})
	}
	return id
}

func span(t *testing.T, s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func number(t *testing.T, s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
