package demo

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// script runs the commands that the demo was given.
func (s *show) script(ctx context.Context) {
	for _, c := range s.o.Script {
		if ctx.Err() != nil {
			return
		}
		if err := s.do(ctx, c); err != nil {
			s.failed.Add(1)
			s.note(err.Error())
		}
	}
}

// maxLine bounds a line of input.
const maxLine = 4 << 10

// input runs the commands of the input, until the input or the demo ends. The
// end of the input, or a line that is too long, ends the input and not the
// demo.
func (s *show) input(ctx context.Context) {
	known := s.o.Names()
	lines := bufio.NewScanner(s.o.In)
	lines.Buffer(make([]byte, 0, maxLine), maxLine)
	for lines.Scan() && ctx.Err() == nil {
		commands, err := ReadScript("input", lines.Text(), known)
		if err != nil {
			s.note(strings.TrimPrefix(err.Error(), "input:1: "))
			continue
		}
		if len(commands) == 0 {
			s.note("")
		}
		for _, c := range commands {
			if err := s.do(ctx, c); err != nil {
				s.note(err.Error())
			}
		}
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil {
		s.note("no more commands are read: " + err.Error())
	}
}

// do runs one command.
func (s *show) do(ctx context.Context, c Command) error {
	if c.Verb == Sleep {
		pause(ctx, c.Time)
		return nil
	}
	s.order.Lock()
	defer s.order.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	answer, err := s.act(c)
	if err == nil && answer != "" {
		s.note(answer)
	}
	return err
}

// act runs a command and returns its reply.
func (s *show) act(c Command) (string, error) {
	now := time.Now()
	switch c.Verb {
	case Status:
		return s.status(), nil
	case Help:
		return helpText, nil
	case Quit:
		s.quit()
		return "", nil
	case Cut:
		return s.cut(c, now)
	case Heal:
		return s.heal(now)
	case Kill:
		s.marks.disturb(now)
		if err := s.cluster.named(c.Daemon).kill(); err != nil {
			return "", err
		}
		return c.Daemon + " is killed; its counts that no other daemon has are lost", nil
	case Start:
		s.marks.disturb(now)
		if err := s.cluster.named(c.Daemon).start(); err != nil {
			return "", err
		}
		return c.Daemon + " is back, as a new incarnation", nil
	case Latency:
		s.marks.disturb(now)
		s.wan.SetDelay(c.A, c.B, c.Time)
		return fmt.Sprintf("%s and %s are %s apart, one way", c.A, c.B, c.Time), nil
	case Skew:
		s.marks.disturb(now)
		s.cluster.named(c.Daemon).skew.Store(int64(c.Time))
		return fmt.Sprintf("the wall clock of %s is off by %s; no peer follows an offset of more than 250ms", c.Daemon, c.Time), nil
	case Surge:
		s.clients.surge(s.rule(c.Rule), c.Factor)
		return fmt.Sprintf("%s gets %gx as many calls as usual", c.Rule, c.Factor), nil
	case SetTo:
		return s.limit(c, now)
	case Budget:
		return s.budget(c)
	}
	return "", fmt.Errorf("%s does nothing here", c.Verb)
}

func (s *show) rule(name string) int { return slices.Index(ruleNames(s.cluster.limits.Rules()), name) }

func (s *show) cut(c Command, now time.Time) (string, error) {
	if len(s.o.Regions) == 1 {
		return "", fmt.Errorf("%s is the only region: start the demo with --regions of two or more", c.A)
	}
	cut := 0
	for _, other := range s.o.Regions {
		if other != c.A && (c.B == "" || c.B == other) && s.wan.Cut(c.A, other) {
			cut++
		}
	}
	if cut == 0 {
		return "", fmt.Errorf("%s is partitioned already: use heal to end it", c.A)
	}
	s.marks.cut(now)
	if c.B != "" {
		return fmt.Sprintf("%s and %s are partitioned from each other", c.A, c.B), nil
	}
	return c.A + " is partitioned from all other regions", nil
}

func (s *show) heal(now time.Time) (string, error) {
	n := s.wan.Heal()
	if n == 0 {
		return "there is no partition", nil
	}
	s.marks.healed(now)
	return "healed: measuring until all daemons know all counts", nil
}

// limit changes the limit of a rule: in the ledger first when it grows and
// last when it shrinks, so that nothing admitted by the old one counts as over.
func (s *show) limit(c Command, now time.Time) (string, error) {
	rule := s.rule(c.Rule)
	was := s.cluster.limits.Rules()[rule].Limit
	if c.Limit > was {
		s.ledger.SetLimit(rule, c.Limit, now)
	}
	if err := s.cluster.setLimits(c.Rule, func(r *Rule) { r.Limit = c.Limit }); err != nil {
		return "", err
	}
	if c.Limit < was {
		s.ledger.SetLimit(rule, c.Limit, now)
	}
	return fmt.Sprintf("the limit of %s is %d instead of %d, on all daemons", c.Rule, c.Limit, was), nil
}

// budget sets the overage budget of a rule, or takes it away.
func (s *show) budget(c Command) (string, error) {
	rule := s.rule(c.Rule)
	err := s.cluster.setLimits(c.Rule, func(r *Rule) { r.Budget, r.HasBudget = c.Share, !c.Off })
	if err != nil {
		return "", err
	}
	s.ledger.SetBudget(rule, !c.Off, time.Now())
	others := len(s.o.Regions) - 1
	if c.Off {
		return fmt.Sprintf("%s has no overage_budget on all daemons: counts are estimated, and the worst case is %d%% over,\n"+
			"each region partitioned alone and using the whole limit", c.Rule, others*100), nil
	}
	r := s.cluster.limits.Rules()[rule]
	return fmt.Sprintf("%s has overage_budget %s on all daemons: from the next window on they hold rights to %d hits\n"+
		"together and admit no more, in any partition; without it the worst case is %d%% over",
		c.Rule, c.Share.String(), r.Most(), others*100), nil
}

// status is all there is to know, in few lines: they are shown below a table.
func (s *show) status() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ports of gRPC, HTTP, admin; limits in %s\n", s.cluster.limits.path)
	for r, region := range s.o.Regions {
		for n, i := range s.cluster.all[r*s.o.Daemons : (r+1)*s.o.Daemons] {
			switch {
			case n == 0:
				fmt.Fprintf(&b, "%-10s", region)
			case n%3 == 0:
				fmt.Fprintf(&b, "\n%-10s", "")
			}
			fmt.Fprintf(&b, "  %d: %-17s", n, state(i))
		}
		b.WriteString("\n")
	}
	for n, r := range s.cluster.limits.Rules()[:ruleCount] {
		if n > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %d/%ds", r.Name, r.Limit, r.Window)
		if r.HasBudget {
			fmt.Fprintf(&b, " budget %s (at most %d)", r.Budget.String(), r.Most())
		}
		if r.Strict {
			b.WriteString(" strict")
		}
	}
	b.WriteString("\n")
	for i, x := range s.o.Regions {
		for _, y := range s.o.Regions[i+1:] {
			fmt.Fprintf(&b, "%s-%s %s  ", x, y, s.wan.Delay(x, y))
		}
	}
	for _, c := range s.wan.Cuts() {
		fmt.Fprintf(&b, "CUT %s-%s  ", c[0], c[1])
	}
	return strings.TrimRight(b.String(), " \n")
}

// state is the ports of a daemon, or its fault.
func state(i *instance) string {
	r := i.live()
	if r == nil {
		return "DOWN"
	}
	c := &i.opts.Config
	out := fmt.Sprintf("%s %s %s", port(c.GRPC.Addr), port(c.HTTP.Addr), port(c.Admin.Addr))
	if r.handle.Ready() != nil {
		out += " UNREADY"
	}
	if d := time.Duration(i.skew.Load()); d != 0 {
		out += fmt.Sprintf(" clock %+.3gs", d.Seconds())
	}
	return out
}

func port(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

// banner lists the daemons' addresses and example commands.
func (s *show) banner() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rld demo: %d regions of %d daemons, network %s, %d asks a second\n\n",
		len(s.o.Regions), s.o.Daemons, s.o.WAN, s.o.Traffic)
	const row = "  %-14s%-19s%-19s%s\n"
	fmt.Fprintf(&b, row, "DAEMON", "gRPC", "HTTP", "admin")
	for _, i := range s.cluster.all {
		c := &i.opts.Config
		fmt.Fprintf(&b, row, i.name, c.GRPC.Addr, c.HTTP.Addr, c.Admin.Addr)
	}
	first, last := s.cluster.all[0], s.cluster.all[len(s.cluster.all)-1]
	fmt.Fprintf(&b, "\nAsk any of them, they count together:\n\n"+
		"  curl -i 'http://%s/v1/check?domain=%s&user=me'\n"+
		"  %s check --addr %s --domain %s user=me\n"+
		"  %s daemon list --admin %s\n  %s netcheck --admin %s\n",
		first.opts.Config.HTTP.Addr, Domain, s.o.Program, last.opts.Config.GRPC.Addr, Domain,
		s.o.Program, first.opts.Config.Admin.Addr, s.o.Program, first.opts.Config.Admin.Addr)
	fmt.Fprintf(&b, "  %s budget --admin %s\n", s.o.Program, first.opts.Config.Admin.Addr)
	return b.String()
}
