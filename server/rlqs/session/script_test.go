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
//	limit k=v requests=N [window=D] [shadow] [sliding|log|bucket]
//	                                          limits a bucket; others are not
//	at T                                      moves the time to T
//	report S                                  stream S reports the buckets of the
//	                                          lines below: k=v,k=v ALLOWED DENIED
//	                                          [ELAPSED], else since the last one
//	end S                                     stream S ends
//	used k=v                                  prints the charged hits that count
//	slow D [k=v]                              calls of the limiter take this long,
//	                                          twice, for all buckets or for one
//
// at and report print what clients have to do.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{world: &world{limits: map[string]*fakeLimit{}}, streams: map[string]*Session{}, began: map[string]time.Duration{}, last: map[string]time.Duration{}}
		s.wait = func(d time.Duration) { s.now += d }
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(t, d) })
	})
}

type script struct {
	*world
	streams map[string]*Session
	names   []string
	began   map[string]time.Duration // streams
	last    map[string]time.Duration // reports, by stream and bucket
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "limit":
		l := &fakeLimit{shadow: d.HasArg("shadow")}
		for name, a := range map[string]algorithm{"sliding": sliding, "log": slidingLog, "bucket": tokenBucket} {
			if d.HasArg(name) {
				l.algorithm = a
			}
		}
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
			s.began[name] = s.now
			s.streams[name], s.names = s.session(), append(s.names, name)
		}
		var usages []Usage
		for line := range strings.Lines(d.Input) {
			f := strings.Fields(line)
			u := Usage{ID: parseID(t, f[0]), Allowed: number(t, f[1]), Denied: number(t, f[2])}
			if last, ok := s.last[name+" "+f[0]]; ok {
				u.Elapsed = s.now - last
			}
			s.last[name+" "+f[0]] = s.now
			if len(f) > 3 {
				u.Elapsed = span(t, f[3])
			}
			usages = append(usages, u)
		}
		s.streams[name].Report(usages)
		return s.act(t, name)
	case "end":
		delete(s.streams, d.CmdArgs[0].Key)
		return ""
	case "used":
		l := s.limits[parseID(t, d.CmdArgs[0].String()).text()]
		return fmt.Sprintln(l.used(s.now))
	case "slow":
		s.slow, s.slowID = span(t, d.CmdArgs[0].Key), ""
		if len(d.CmdArgs) > 1 {
			s.slowID = parseID(t, d.CmdArgs[1].String()).text()
		}
		return ""
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
				at, ok := x.Next()
				if at += s.began[name]; ok && at <= next && (who == "" || at < next) {
					next, who = at, name
				}
			}
		}
		s.now = max(s.now, next)
		if who == "" {
			return b.String()
		}
		s.streams[who].Tick()
		b.WriteString(s.act(t, who))
	}
}

// act prints the actions for the client of a stream, with their times.
func (s *script) act(t *testing.T, who string) string {
	var b strings.Builder
	for more := true; more; {
		out, left, err := s.streams[who].Act()
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(text(who, s.now, out))
		more = left
	}
	return b.String()
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
