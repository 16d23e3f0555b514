package demo

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/rules"
)

// Verb is the kind of a command.
type Verb string

// The verbs.
const (
	Status  Verb = "status"
	Cut     Verb = "cut"
	Heal    Verb = "heal"
	Kill    Verb = "kill"
	Start   Verb = "start"
	Latency Verb = "latency"
	Surge   Verb = "surge"
	SetTo   Verb = "limit"
	Skew    Verb = "skew"
	Budget  Verb = "budget"
	Sleep   Verb = "sleep"
	Help    Verb = "help"
	Quit    Verb = "quit"
)

// Command is one command, read and checked against the names there are. Which
// of its fields count follows from the verb.
type Command struct {
	Verb   Verb
	A, B   string // regions; B is "" for all others
	Daemon string
	Rule   string
	Time   time.Duration // of latency, skew and sleep
	Limit  uint32
	Factor float64
	Share  rules.PPM
	Off    bool // of budget: there is to be none
}

// Names is what commands may name.
type Names struct{ Regions, Daemons, Rules []string }

// The ranges of what commands take.
const (
	maxLatency = 10 * time.Second
	maxSkew    = 24 * time.Hour
	maxSleep   = 24 * time.Hour
	maxFactor  = 1000
	maxLimit   = 10_000_000
)

// form is the syntax of a command and its purpose.
type form struct {
	verb        Verb
	args, about string
	least, most int // arguments
}

var forms = [...]form{
	{Status, "", "addresses, members, cuts, limits", 0, 0},
	{Cut, "REGION [REGION]", "cut a region off from all others, or from one", 1, 2},
	{Heal, "", "end all cuts, and measure the time to agree", 0, 0},
	{Kill, "DAEMON", "end a daemon as kill -9 does", 1, 1},
	{Start, "DAEMON", "start it again, as a new incarnation", 1, 1},
	{Latency, "REGION REGION 300ms", "one-way delay between two regions", 3, 3},
	{Surge, "RULE 10x", "that many times the usual traffic; 1x ends it", 2, 2},
	{SetTo, "RULE 500", "other limit, reloaded by all daemons", 2, 2},
	{Skew, "DAEMON 2s", "wall clock of a daemon, ahead or (-2s) behind", 2, 2},
	{Budget, "RULE 2%", "overage_budget of a limit, or off for none", 2, 2},
	{Sleep, "10s", "wait before the next command", 1, 1},
	{Help, "", "this", 0, 0},
	{Quit, "", "stop everything", 0, 0},
}

// aliases are other names that people type.
var aliases = map[string]Verb{"?": Help, "exit": Quit, "q": Quit}

// HelpLines lists the commands, one per line.
func HelpLines() []string {
	out := make([]string, 0, len(forms))
	for _, f := range forms {
		out = append(out, fmt.Sprintf("  %-28s%s", strings.TrimSpace(string(f.verb)+" "+f.args), f.about))
	}
	return out
}

// helpText is what commands there are, in few lines: they are shown below a
// table.
const helpText = `network   cut REGION [REGION], heal, latency REGION REGION 300ms
daemons   kill DAEMON, start DAEMON, skew DAEMON 2s
clients   surge RULE 10x
limits    limit RULE 500, budget RULE 2%, budget RULE off
else      status, sleep 10s, help, quit; or several: cut eu-west; sleep 5; heal`

// Parse parses a command. An empty line or a comment (# ...) has the verb "".
// The error is one line and states the correct form.
func Parse(line string, n Names) (Command, error) {
	text, _, _ := strings.Cut(line, "#")
	words := strings.Fields(text)
	if len(words) == 0 {
		return Command{}, nil
	}
	f, err := formOf(words[0])
	if err != nil {
		return Command{}, err
	}
	args := words[1:]
	if len(args) < f.least || len(args) > f.most {
		return Command{}, fmt.Errorf("%s takes %s: use %s", f.verb, countOf(f), f.usage())
	}
	c := Command{Verb: f.verb}
	if err := c.read(args, n); err != nil {
		return Command{}, err
	}
	return c, nil
}

func formOf(word string) (form, error) {
	word = strings.ToLower(word)
	verb := Verb(word)
	if v, ok := aliases[word]; ok {
		verb = v
	}
	var known []string
	for _, f := range forms {
		if f.verb == verb {
			return f, nil
		}
		known = append(known, string(f.verb))
	}
	return form{}, unknown("command", word, known)
}

func (f form) usage() string { return strings.TrimSpace(string(f.verb) + " " + f.args) }

func countOf(f form) string {
	switch {
	case f.most == 0:
		return "nothing more"
	case f.least != f.most:
		return fmt.Sprintf("%d or %d words", f.least, f.most)
	case f.least == 1:
		return "one word"
	}
	return fmt.Sprintf("%d words", f.least)
}

// read reads the arguments of a verb, whose number is right.
func (c *Command) read(args []string, n Names) error {
	r := &reader{args: args}
	switch c.Verb {
	case Cut, Latency:
		c.A = r.name("region", n.Regions)
		if c.Verb == Latency || len(args) == 2 {
			c.B = r.name("region", n.Regions)
		}
		if c.A != "" && c.A == c.B {
			r.err = fmt.Errorf("%s twice: name two regions", c.A)
		}
	case Kill, Start, Skew:
		c.Daemon = r.name("daemon", n.Daemons)
	case Surge, SetTo, Budget:
		if c.Rule = r.name("rule", n.Rules); r.err == nil {
			r.err = c.amount(r.next())
		}
	}
	switch c.Verb {
	case Latency:
		c.Time = r.time("the latency", 0, maxLatency, "300ms")
	case Skew:
		c.Time = r.time("the skew", -maxSkew, maxSkew, "2s or -2s")
	case Sleep:
		if seconds, bad := strconv.ParseFloat(args[0], 64); bad == nil {
			args[0] = strconv.FormatFloat(seconds, 'f', -1, 64) + "s"
		}
		c.Time = r.time("the time", 0, maxSleep, "10s")
	}
	return r.err
}

// reader reads the arguments of a command in order, up to the first error.
type reader struct {
	args []string
	err  error
}

func (r *reader) next() string {
	arg := r.args[0]
	r.args = r.args[1:]
	return arg
}

// name reads one of the known names.
func (r *reader) name(what string, known []string) string {
	arg := r.next()
	for _, k := range known {
		if strings.EqualFold(k, arg) {
			return k
		}
	}
	if r.err == nil {
		r.err = unknown(what, arg, known)
	}
	return ""
}

// time reads a time between low and high.
func (r *reader) time(what string, low, high time.Duration, like string) time.Duration {
	text := r.next()
	d, err := time.ParseDuration(text)
	if r.err == nil && (err != nil || d < low || d > high) {
		r.err = fmt.Errorf("%s %q is no time from %s to %s: use %s", what, clip(text), low, high, like)
	}
	return d
}

// amount reads the number after a rule.
func (c *Command) amount(text string) error {
	switch c.Verb {
	case Surge:
		x, err := strconv.ParseFloat(strings.TrimSuffix(strings.ToLower(text), "x"), 64)
		if err != nil || math.IsNaN(x) || x < 0 || x > maxFactor {
			return fmt.Errorf("the factor %q is none from 0x to %dx: use 10x", clip(text), maxFactor)
		}
		c.Factor = x
	case SetTo:
		v, err := strconv.ParseUint(strings.ReplaceAll(text, ",", ""), 10, 32)
		if err != nil || v < 1 || v > maxLimit {
			return fmt.Errorf("the limit %q is no number from 1 to %d: use 500", clip(text), maxLimit)
		}
		c.Limit = uint32(v)
	case Budget:
		if c.Off = strings.EqualFold(text, "off"); c.Off {
			return nil
		}
		number, ok := strings.CutSuffix(text, "%")
		v, err := strconv.ParseFloat(number, 64)
		if !ok || err != nil || math.IsNaN(v) || v < 0 || v > 100 {
			return fmt.Errorf("the budget %q is no share from 0%% to 100%%: use 2%%, or off", clip(text))
		}
		c.Share = rules.PPM(math.Round(v * float64(rules.Percent)))
	}
	return nil
}

// unknown lists the valid names, and suggests the one nearest to this name.
func unknown(what, name string, known []string) error {
	meant := ""
	if closest := suggest.Closest(name, known); closest != "" {
		meant = fmt.Sprintf(" (did you mean %s?)", closest)
	}
	all := strings.Join(known, ", ")
	if i := strings.LastIndex(all, ", "); i >= 0 {
		all = all[:i] + " or " + all[i+2:]
	}
	return fmt.Errorf("there is no %s %q%s: use %s", what, clip(name), meant, all)
}

// clip shortens quoted input so that a message stays on one line.
func clip(s string) string {
	if r := []rune(s); len(r) > 30 {
		return string(r[:30]) + "…"
	}
	return s
}
