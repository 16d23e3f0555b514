package limitstest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/georld/rld/daemon"
	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/web"
)

// members are those of an answer that a test may expect: the members of
// /api/v1/rate_limit, and the HTTP status.
var members = []string{
	"allowed", "rule", "limit", "window", "burst", "remaining", "reset_after", "delay_ms",
	"reason", "would_deny", "retry_after", "status",
}

// start is when each test begins: at a boundary of all windows but those of
// weeks and years.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// settle is between the clocks of an engine that is made and the start of its
// test: time never goes back, however long that takes.
const settle = time.Hour

// failure is an answer that is not the expected one.
type failure struct {
	Test    string           `json:"test"`
	Pos     yamlpos.Position `json:"at"`
	Message string           `json:"message"`
}

// play makes the calls of a test of a daemon alone, which has counted nothing
// before. It ends with the first unexpected answer and returns nil if there is
// none. An error is a fault of rld.
func play(set *rules.Set, t *test) (*failure, error) {
	e, err := daemon.NewEngine(daemon.EngineConfig{
		Node: node.Default(), MaxKeys: maxTimes, Wall: func() time.Time { return start.Add(-settle) },
	})
	if err != nil {
		return nil, err
	}
	e.SetRules(set, node.MatcherOptions{})
	var since time.Duration
	for i := range t.calls {
		c := &t.calls[i]
		since += c.after
		for n := range c.times {
			at := node.Instant{Mono: settle + since, Wall: start.Add(since).UnixNano()}
			got, err := answer(e, at, t.domain, c)
			if err != nil {
				return &failure{t.name, c.pos, err.Error()}, nil
			}
			if pos, text := compare(c.expect, got); text != "" {
				if c.times > 1 {
					text = fmt.Sprintf("time %d of %d: %s", n+1, c.times, text)
				}
				return &failure{t.name, pos, text}, nil
			}
		}
	}
	return nil, nil
}

// answer makes a call and returns the members of its answer, as text.
func answer(e *daemon.Engine, at node.Instant, domain string, c *call) (map[string]string, error) {
	var q node.Call
	q.Domain, q.Peek = domain, c.peek
	for _, d := range c.descriptors {
		d.Hits = c.hits
		q.Descriptors = append(q.Descriptors, d)
	}
	if err := e.CheckAt(at, &q); err != nil {
		return nil, err
	}
	status, body := web.Flat(&q, &server.Settings{}, time.Unix(0, at.Wall))
	var got map[string]any
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.UseNumber()
	if err := d.Decode(&got); err != nil {
		return nil, err
	}
	got["status"] = status
	out := make(map[string]string, len(got))
	for name, v := range got {
		out[name] = fmt.Sprint(v)
	}
	return out, nil
}

// compare returns the first expected member that an answer has not, with the
// whole answer; "" if it has all.
func compare(expect []member, got map[string]string) (pos yamlpos.Position, text string) {
	for _, m := range expect {
		if is := got[m.name]; is != m.want && !(is == "" && absent(m.name, m.want)) {
			return m.pos, fmt.Sprintf("%s is %s, want %s; the answer has %s", m.name, shown(is), shown(m.want), all(got))
		}
	}
	return yamlpos.Position{}, ""
}

// absent reports whether a value is what the absence of a member means.
func absent(name, want string) bool {
	switch name {
	case "would_deny":
		return want == "false"
	case "delay_ms", "retry_after":
		return want == "0" || want == "none"
	}
	return want == "" || want == "none"
}

// shown returns a value for a message.
func shown(v string) string {
	if v == "" {
		return "none"
	}
	return v
}

// all lists the members of an answer in the order of the members.
func all(got map[string]string) string {
	var parts []string
	for _, name := range members {
		if v, ok := got[name]; ok {
			parts = append(parts, name+" "+v)
		}
	}
	return strings.Join(parts, ", ")
}
