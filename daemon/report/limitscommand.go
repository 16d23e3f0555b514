package report

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
)

// longestEmergency bounds an emergency override.
const longestEmergency = 24 * time.Hour

// ChangeLimits executes a command about limits, and waits for its result until
// ctx ends. Without a leader of the control log, what only lowers becomes an
// emergency override.
func (r *Report) ChangeLimits(ctx context.Context, name api.LimitsCommandName, q api.LimitsRequest) (api.LimitsCommandAnswer, error) {
	s := r.Control.State()
	switch {
	case s.Fault != "":
		return api.LimitsCommandAnswer{}, errors.New(notOpen(&s))
	case s.Record == nil:
		return api.LimitsCommandAnswer{}, errors.New("the cluster has not begun: first run rld cluster init")
	case (name == api.BlockKey || name == api.ResetKey) && !r.SharedKeys && (len(s.Status.Peers) > 0 || len(s.Record.Regions) > 1):
		return api.LimitsCommandAnswer{}, errors.New("keys have other hashes at each daemon: first set cluster.secret_file, the same at all daemons")
	}
	id, err := commandID(q.ID)
	if err != nil {
		return api.LimitsCommandAnswer{}, err
	}
	request := control.Request{ID: id, Author: q.Author, Reason: q.Reason}
	if !q.DryRun && s.Record.Outcome(request.ID) != nil { // repeated
		return r.LimitsCommand(request.ID.String())
	}
	change, err := limitsChange(r.Control, name, &q, &s.Record.Limits)
	if err != nil {
		return api.LimitsCommandAnswer{}, err
	}
	request.Limits = change
	if q.DryRun {
		return tryLimits(r.Control, request)
	}
	result, err := r.Control.Submit(ctx, request)
	switch {
	case errors.Is(err, ErrNoLeader):
		return emergency(r, request)
	case errors.Is(err, ErrNoResult):
		return api.LimitsCommandAnswer{ID: request.ID.String()}, nil
	case err != nil:
		return api.LimitsCommandAnswer{}, trimControl(err)
	case result.Err != nil:
		return unchanged(api.LimitsCommandAnswer{ID: request.ID.String()}, whole(r.Control, request, result.Err))
	}
	return r.LimitsCommand(request.ID.String())
}

// whole returns a refusal that the record has cut, as this daemon would state
// it: the same text without the cut, or else the refusal itself.
func whole(c Control, q control.Request, refused error) error {
	start, cut := strings.CutSuffix(refused.Error(), "...")
	if !cut {
		return refused
	}
	var err error
	c.Do(func(n *control.Node) { _, err = n.Try(q) })
	if err == nil {
		return refused
	}
	if err = trimControl(err); strings.HasPrefix(err.Error(), start) {
		return err
	}
	return refused
}

// unchanged returns the answer to a command that was refused: its error, unless
// there was nothing to do.
func unchanged(out api.LimitsCommandAnswer, err error) (api.LimitsCommandAnswer, error) {
	if !strings.HasPrefix(err.Error(), control.NothingToDo) {
		return api.LimitsCommandAnswer{}, err
	}
	out.Done, out.Unchanged, out.Text = true, true, err.Error()
	return out, nil
}

// LimitsCommand answers /v1/limits/command for the id of a command. It fails if
// the id is invalid, or if the command was refused.
func (r *Report) LimitsCommand(id string) (api.LimitsCommandAnswer, error) {
	var n control.Number
	if err := n.UnmarshalText([]byte(id)); err != nil {
		return api.LimitsCommandAnswer{}, fmt.Errorf("id %q: want 16 hexadecimal digits", api.Clip(id))
	}
	r.Control.Do(func(n *control.Node) { n.Limits().Ask() })
	s, out := r.Control.State(), api.LimitsCommandAnswer{ID: id}
	if s.Record == nil {
		return out, nil
	}
	outcome := s.Record.Outcome(n)
	switch {
	case outcome == nil:
		return out, nil
	case outcome.Refused != "":
		return unchanged(out, errors.New(outcome.Refused))
	}
	out.Done, out.Version = true, versionText(outcome.Version)
	if c := commandOf(s.Record, func(c *control.Command) bool { return c.Request == n }); c != nil {
		out.Text = c.Text
	}
	is := s.Record.Limits.StateOf(outcome.Version)
	out.Pending, out.InForce, out.Until = is.Pending, timeOf(is.From), timeOf(is.Until)
	if out.Pending {
		out.Waits = s.Status.Waits
	}
	return out, nil
}

// tryLimits answers a dry run.
func tryLimits(c Control, q control.Request) (api.LimitsCommandAnswer, error) {
	out := api.LimitsCommandAnswer{ID: q.ID.String(), DryRun: true}
	var all []rules.Difference
	err := errors.New("the control log of this daemon is not open")
	c.Do(func(n *control.Node) {
		if out.Text, err = n.Try(q); err == nil && q.Limits.Rules != nil {
			all, err = n.Limits().Compare(q.Limits.Rules)
		}
	})
	if err != nil {
		return unchanged(out, trimControl(err))
	}
	out.Changed = len(all)
	for _, d := range all[:min(len(all), api.MaxDifferences)] {
		x := api.LimitsDifference{Domain: d.Domain, Rule: d.Path, Lower: d.Lowers, Higher: d.Raises, Moved: d.Shape}
		if d.Before != nil {
			x.Before = limits.DescribeRule(d.Before)
		}
		if d.After != nil {
			x.After = limits.DescribeRule(d.After)
		}
		out.Differences = append(out.Differences, x)
	}
	return out, nil
}

// emergency takes a command as an emergency override, while no majority of the
// voters can be reached.
func emergency(r *Report, q control.Request) (api.LimitsCommandAnswer, error) {
	s := r.Control.State()
	refused := func(why string) (api.LimitsCommandAnswer, error) {
		return api.LimitsCommandAnswer{}, fmt.Errorf("%s. Nothing was changed: %s", r.leaderless(&s), why)
	}
	o := q.Limits.Override
	if o == nil || o.Unset || o.From != 0 {
		return refused("without a majority only an override that lowers, and begins now, is possible")
	}
	now := r.Wall().UnixMilli()
	e := control.Emergency{
		ID: q.ID, Target: o.Target, Setting: o.Setting, Until: now + min(o.For, longestEmergency.Milliseconds()),
		Author: q.Author, Reason: q.Reason,
	}
	err := errors.New("the control log of this daemon is not open")
	r.Control.Do(func(n *control.Node) { _, err = n.Limits().SubmitEmergency(e) })
	if err != nil {
		return refused(trimControl(err).Error())
	}
	r.Log.Warn("an operator set an emergency override", "event", "limits", "target", e.Target.String(), "setting", e.Setting.String(),
		"author", q.Author, "reason", q.Reason)
	return api.LimitsCommandAnswer{
		ID: q.ID.String(), Done: true, Emergency: true, Until: timeOf(e.Until),
		Text: fmt.Sprintf("%v has %v, an emergency override", &e.Target, &e.Setting),
	}, nil
}

// limitsChange returns the change of a command.
func limitsChange(log Control, name api.LimitsCommandName, q *api.LimitsRequest, l *control.Limits) (*control.LimitsChange, error) {
	switch name {
	case api.ApplyRules, api.RollBackRules:
		return rulesChange(name, q, l)
	case api.AdoptRules:
		return adoption(log, q, l)
	}
	o := control.OverrideChange{Unset: name == api.UnsetOverride || name == api.UnblockKey}
	o.Domain, o.Rule, o.Key, o.Block = q.Domain, q.Rule, q.Key, name == api.BlockKey
	o.Reset = name == api.ResetKey
	o.Requests, o.Mode = q.Requests, control.Mode(q.Mode)
	if b := q.OverageBudget; b != nil {
		if *b < 0 || *b > 10 {
			return nil, fmt.Errorf("overage_budget_ratio %v: want 0 to 10", *b)
		}
		o.Budget = new(uint32(math.Round(*b * float64(rules.Whole))))
	}
	if q.From != nil {
		o.From = q.From.UnixMilli()
	}
	o.For = int64(min(q.ForSeconds, 1e9) * 1_000)
	if q.IfVersion != "" {
		for i := range l.Overrides {
			if v := l.Overrides[i].Version; v.String() == q.IfVersion {
				o.If = &v
			}
		}
		if o.If == nil {
			return nil, fmt.Errorf("there is no override of version %s: rld limits list has them", api.Clip(q.IfVersion))
		}
	}
	return &control.LimitsChange{Override: &o}, nil
}

// adoption returns the change that adopts the files of this daemon.
func adoption(log Control, q *api.LimitsRequest, l *control.Limits) (*control.LimitsChange, error) {
	is, err := expected(q, l)
	if err != nil {
		return nil, err
	}
	var change *control.LimitsChange
	err = errors.New("the control log of this daemon is not open")
	log.Do(func(n *control.Node) { change, err = n.Limits().Adoption() })
	if err != nil {
		return nil, err
	}
	change.Rules.If = is
	return change, nil
}

// expected returns the version of the rules that a command replaces, nil for
// any.
func expected(q *api.LimitsRequest, l *control.Limits) (*control.Version, error) {
	if q.IfVersion == "" {
		return nil, nil
	}
	var is control.Version
	if latest := l.Latest(); latest != nil {
		is = latest.Version
	}
	if is.String() != q.IfVersion {
		return nil, fmt.Errorf("the rules have version %v, not %s: compare again with those, and use --if-version %v", is, api.Clip(q.IfVersion), is)
	}
	return &is, nil
}

// rulesChange returns the change of a command about rules.
func rulesChange(name api.LimitsCommandName, q *api.LimitsRequest, l *control.Limits) (*control.LimitsChange, error) {
	is, err := expected(q, l)
	if err != nil {
		return nil, err
	}
	c := control.RulesChange{If: is}
	if name == api.RollBackRules {
		for _, a := range l.Applied {
			if a.Version.String() == q.Version {
				c.Rollback = &a.Version
			}
		}
		if c.Rollback == nil {
			return nil, fmt.Errorf("version %s is none of the rules: rld limits history lists them", api.Clip(q.Version))
		}
		return &control.LimitsChange{Rules: &c}, nil
	}
	files := make([]control.RuleFile, len(q.Files))
	for i, f := range q.Files {
		files[i] = control.RuleFile{Name: f.Name, Text: f.Text}
	}
	set, err := control.NewRuleSet(files)
	c.Set = set
	return &control.LimitsChange{Rules: &c}, err
}
