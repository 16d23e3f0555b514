package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	core "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
)

// TestScripts replays testdata. The commands are
//
//	settings   any of legacy, shadow, not-ready, no-rls, documentation=URL; the
//	           others at their default. Builds a new handler.
//	engine     the answer of the engine, a status a line:
//	           100/minute remaining=42 reset=17s rule=tier=free > user_id
//	           or "none", "unlimited", "error TEXT", "input-error TEXT"
//	rls        the answer of the RLS function: OK, OVER_LIMIT, UNKNOWN,
//	           "input-error TEXT", "status CODE TEXT" or "error TEXT"
//	request    a request line, headers, a blank line and a body. Prints the
//	           call the engine got, the answer and the recorded events.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		r := newRig()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "settings":
				r.configure(t, d)
			case "engine":
				r.engine.script(t, d.Input)
			case "rls":
				r.rls = d.Input
			case "request":
				return r.request(t, d.Input)
			default:
				t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
			}
			return ""
		})
	})
}

// rig is one handler between a scripted engine and a printer.
type rig struct {
	engine   *engine
	rls      string
	recorded recorder
	handler  http.Handler
}

func newRig() *rig {
	r := &rig{engine: &engine{}}
	r.handler = New(r.options())
	return r
}

// startOfScripts is a quarter of a second after a full one, so that rounding
// up shows.
func startOfScripts() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 250e6, time.UTC) }

func (r *rig) options() Options {
	return Options{
		Engine:   r.engine,
		RLS:      r.shouldRateLimit,
		Recorder: &r.recorded,
		Settings: server.DefaultSettings(),
		Ready:    func() bool { return true },
		Mapping:  DefaultMapping(),
		Now:      startOfScripts,
	}
}

func (r *rig) configure(t *testing.T, d *datadriven.TestData) {
	o := r.options()
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "legacy":
			o.Settings.LegacyHeaders = true
		case "shadow":
			o.Settings.Shadow = true
		case "documentation":
			o.Settings.DocumentationURL = a.Vals[0]
		case "not-ready":
			o.Ready = func() bool { return false }
		case "no-rls":
			o.RLS = nil
		default:
			t.Fatalf("%s: unknown setting %q", d.Pos, a.Key)
		}
	}
	r.handler = New(o)
}

func (r *rig) request(t *testing.T, input string) string {
	head, body, _ := strings.Cut(input, "\n\n")
	lines := strings.Split(head, "\n")
	method, target, _ := strings.Cut(lines[0], " ")
	req := httptest.NewRequest(method, expand(target), strings.NewReader(expand(strings.TrimSpace(body))))
	for _, l := range lines[1:] {
		name, value, _ := strings.Cut(l, ": ")
		req.Header.Set(name, value)
	}
	r.engine.called, r.recorded = "", recorder{}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	if n := w.Header().Get("Content-Length"); method != http.MethodHead && n != strconv.Itoa(w.Body.Len()) {
		t.Errorf("Content-Length %s of a body of %d bytes", n, w.Body.Len())
	}
	return r.engine.called + show(t, w) + r.recorded.String()
}

// expand replaces "{x*1000}" by a thousand times x.
func expand(s string) string {
	before, rest, ok := strings.Cut(s, "{x*")
	if !ok {
		return s
	}
	count, after, _ := strings.Cut(rest, "}")
	n, err := strconv.Atoi(count)
	if err != nil {
		return s
	}
	return before + strings.Repeat("x", n) + after
}

func show(t *testing.T, w *httptest.ResponseRecorder) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s\n", w.Code, http.StatusText(w.Code))
	for _, name := range slices.Sorted(maps.Keys(w.Header())) {
		if name != "Content-Length" {
			fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(w.Header()[name], " | "))
		}
	}
	body := strings.TrimSuffix(w.Body.String(), "\n")
	if strings.HasSuffix(w.Header().Get("Content-Type"), "json") && body != "" {
		body = indent(t, body)
	}
	if body != "" {
		b.WriteString(body + "\n")
	}
	return b.String()
}

// indent formats a JSON body with a line for each member, and fails on other
// bodies.
func indent(t *testing.T, body string) string {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		t.Errorf("body is no JSON object: %v\n%s", err, body)
		return body
	}
	// Indenting by the decoder's own rules would sort the members; keep the
	// order and only break the lines of the outer object and of lists in it.
	var out strings.Builder
	depth, inText, escaped := 0, false, false
	for _, c := range body {
		switch {
		case escaped:
			escaped = false
		case inText && c == '\\':
			escaped = true
		case c == '"':
			inText = !inText
		case inText:
		case c == ' ': // protojson puts blanks at random
			continue
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ',' && depth == 1:
			out.WriteString(",\n ")
			continue
		case c == ',' && depth == 2:
			out.WriteString(",\n   ")
			continue
		}
		out.WriteRune(c)
	}
	return out.String()
}

// recorder counts.
type recorder struct{ decided, malformed int }

func (r *recorder) Decided(server.Edge, time.Duration) { r.decided++ }
func (r *recorder) Malformed(server.Edge)              { r.malformed++ }

func (r *recorder) String() string {
	switch {
	case r.decided == 0 && r.malformed == 0:
		return "recorded: nothing\n"
	case r.malformed == 0:
		return fmt.Sprintf("recorded: decided %d\n", r.decided)
	case r.decided == 0:
		return fmt.Sprintf("recorded: malformed %d\n", r.malformed)
	}
	return fmt.Sprintf("recorded: decided %d, malformed %d\n", r.decided, r.malformed)
}

func (r *rig) shouldRateLimit(
	_ context.Context, req *core.RateLimitRequest,
) (*core.RateLimitResponse, error) {
	r.engine.called = fmt.Sprintf("rls: %s, %d descriptors, %d hits\n",
		req.GetDomain(), len(req.GetDescriptors()), req.GetHitsAddend())
	what, rest, _ := strings.Cut(r.rls, " ")
	switch what {
	case "input-error":
		return nil, fmt.Errorf("call: %w", &node.InputError{Descriptor: -1, Entry: -1, Problem: rest})
	case "status":
		code, text, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(code)
		if err != nil {
			return nil, err
		}
		return nil, status.Error(codes.Code(n), text)
	case "error":
		return nil, errors.New(rest)
	}
	code := core.RateLimitResponse_Code(core.RateLimitResponse_Code_value[what])
	return &core.RateLimitResponse{
		OverallCode: code,
		Statuses:    []*core.RateLimitResponse_DescriptorStatus{{Code: code, LimitRemaining: 3}},
	}, nil
}

// engine answers by its script and notes its calls.
type engine struct {
	statuses []node.Status
	refused  int
	err      error
	called   string
}

func (e *engine) Rules() *rules.Set { return nil }

func (e *engine) Check(_ context.Context, c *node.Call) error {
	var b strings.Builder
	fmt.Fprintf(&b, "call: %s", c.Domain)
	for _, d := range c.Descriptors {
		b.WriteString(" [")
		for i, en := range d.Entries {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s=%q", en.Key, en.Value)
		}
		fmt.Fprintf(&b, "]x%d", d.Hits)
		if d.Override.Unit != rules.NoUnit {
			fmt.Fprintf(&b, "(%d/%s)", d.Override.Requests, d.Override.Unit)
		}
	}
	if c.Peek {
		b.WriteString(" peek")
	}
	e.called = b.String() + "\n"
	if e.err != nil {
		return e.err
	}
	c.Statuses = append(c.Statuses[:0], e.statuses...)
	would := node.Decide(slices.Clone(c.Statuses), node.Policy{}).WouldDeny
	c.Decision = node.Decision{Allowed: e.refused < 0, WouldDeny: e.refused < 0 && would, Refused: e.refused}
	return nil
}

func (e *engine) script(t *testing.T, input string) {
	e.statuses, e.refused, e.err = nil, -1, nil
	for line := range strings.Lines(input) {
		line = strings.TrimSpace(line)
		what, rest, _ := strings.Cut(line, " ")
		switch what {
		case "error":
			e.err = errors.New(rest)
		case "input-error":
			e.err = &node.InputError{Descriptor: 0, Entry: 1, Problem: rest}
		default:
			s := parseStatus(t, line)
			if s.Over && s.Refuses() && e.refused < 0 {
				e.refused = len(e.statuses)
			}
			e.statuses = append(e.statuses, s)
		}
	}
}

// parseStatus reads one line of the command engine.
func parseStatus(t *testing.T, line string) node.Status {
	var s node.Status
	line, path, ok := strings.Cut(line, "rule=")
	if ok {
		s.Rule = &rules.Rule{Path: path}
	}
	words := strings.Fields(line)
	if words[0] == "none" {
		return s
	}
	if words[0] == "unlimited" {
		s.Unlimited = true
		return s
	}
	l := &rules.Limit{Multiplier: 1}
	requests, unit, _ := strings.Cut(words[0], "/")
	l.Requests = uint32(number(t, requests))
	if m := strings.TrimRight(unit, "abcdefghijklmnopqrstuvwxyz"); m != "" {
		l.Multiplier = uint32(number(t, m))
		unit = unit[len(m):]
	}
	l.Unit = rules.Unit(slices.Index(rules.Units(), unit) + 1)
	s.Limit = l
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		setStatus(t, &s, name, value)
	}
	if s.Rule != nil {
		s.Rule.Limit = l
	}
	return s
}

func setStatus(t *testing.T, s *node.Status, name, value string) {
	switch name {
	case "remaining":
		s.Remaining = number(t, value)
	case "reset":
		s.Reset = duration(t, value)
	case "retry":
		s.Over, s.Retry = true, duration(t, value)
	case "never":
		s.Over, s.Never = true, true
	case "delay":
		s.Delay = duration(t, value)
	case "keys_full":
		s.Degraded = node.KeysFull
	case "owner_unreachable":
		s.Degraded = node.OwnerUnreachable
	case "failed":
		s.Degraded, s.Gate = node.OwnerUnreachable, node.FailureGate
	case "circuit":
		s.Degraded, s.Gate = node.CircuitOpen, node.FailureGate
	case "no_room":
		s.Degraded, s.Gate = node.KeysFull, node.FailureGate
	case "strict":
		s.Limit.Consistency = rules.Strict
	case "rights":
		s.Gate = node.RightsGate
	case "no_rights":
		s.Degraded, s.Gate = node.NoRights, node.RightsGate
	case "no_cluster":
		s.Degraded, s.Gate = node.NoCluster, node.RightsGate
	case "shadow":
		s.Limit.Shadow = true
	case "quota":
		s.Limit.Quota = true
	case "burst":
		s.Limit.Burst = uint32(number(t, value))
	case "name":
		s.Limit.Name = strings.ReplaceAll(value, "~", " ")
	default:
		at := slices.Index(rules.Algorithms(), name)
		if at < 0 {
			t.Fatalf("unknown word %q in a status", name)
		}
		s.Limit.Algorithm = rules.Algorithm(at)
	}
}

func number(t *testing.T, s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func duration(t *testing.T, s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
