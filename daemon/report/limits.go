package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/telemetry"
)

// Limits are the limits that decide the calls of a daemon. Implementations are
// safe for concurrent use.
type Limits interface {
	// State returns the current state.
	State() LimitsState
}

// LimitsState is the state of the limits of a daemon.
type LimitsState struct {
	// Fault is why limits of the control log cannot be used, "" if they are.
	Fault string
	// Domains are the domains of the control log and of files, by name. It must
	// not be modified.
	Domains []control.DomainSource
}

// LimitsPage answers /v1/limits. It asks the leader of the control log what
// pending limits wait for, and does not wait for the answer: the next call has
// it.
func (r *Report) LimitsPage() api.LimitsAnswer {
	if r.Control == nil {
		return api.LimitsAnswer{Alone: true}
	}
	r.Control.Do(func(n *control.Node) { n.Limits().Ask() })
	s, is := r.Control.State(), r.Limits.State()
	out := api.LimitsAnswer{Fault: is.Fault, FilesFault: r.LimitsFault(), Waits: s.Status.Waits}
	for _, d := range is.Domains {
		out.Domains = append(out.Domains, api.LimitsDomain{Domain: d.Domain, Source: string(d.From), Agreed: d.Agreed, Overruled: d.Overruled})
	}
	rec := s.Record
	if s.Fault != "" {
		out.Fault = notOpen(&s)
	}
	if rec == nil {
		return out
	}
	out.Begun, out.InUse, out.Pending = true, versionText(s.Status.Used), versionText(s.Status.Pending)
	if latest := rec.Limits.Latest(); latest != nil {
		out.Rules = versionText(latest.Version)
	}
	now := r.Wall().UnixMilli()
	for i := range rec.Limits.Overrides {
		// The record keeps what has ended, without a leader for long.
		if o := overrideOf(&rec.Limits.Overrides[i], now); o.Until == nil || now < o.Until.UnixMilli() {
			out.Overrides = append(out.Overrides, o)
		}
	}
	r.Control.Do(func(n *control.Node) {
		for _, e := range n.Limits().Emergencies() {
			out.Overrides = append(out.Overrides, api.LimitsOverride{
				Domain: e.Domain, Rule: e.Rule, Key: e.Key, Setting: e.Setting.String(), State: api.OverrideInForce,
				Until: timeOf(e.Until), Author: e.Author, Reason: e.Reason, Emergency: true,
			})
		}
	})
	return out
}

// notOpen returns why the control log of a daemon that could not open it is not
// usable.
func notOpen(s *ControlState) string { return "the control log of this daemon is not open: " + s.Fault }

// versionText returns a version as commands print it, "" for none.
func versionText(v control.Version) string {
	if v == (control.Version{}) {
		return ""
	}
	return v.String()
}

// timeOf returns a time in Unix milliseconds, nil for 0.
func timeOf(at int64) *time.Time {
	if at == 0 {
		return nil
	}
	return new(time.UnixMilli(at).UTC())
}

// overrideOf describes an override at a time in Unix milliseconds.
func overrideOf(o *control.Override, now int64) api.LimitsOverride {
	out := api.LimitsOverride{
		Version: versionText(o.Version), Domain: o.Domain, Rule: o.Rule, Key: o.Key, Setting: o.Setting.String(),
		State: api.OverrideInForce, From: timeOf(cmp.Or(o.Begins(), o.From)), Until: timeOf(o.Until), Author: o.Author, Reason: o.Reason,
		Emergency: o.Emergency != 0,
	}
	if o.Reset { // Until is the end of the entry, not of its effect on a key
		out.Until = nil
	}
	switch begins := o.Begins(); {
	case o.Ended != nil:
		out.State = api.OverrideEnding
	case begins == 0:
		out.State = api.OverridePending
	case now < begins:
		out.State = api.OverrideLater
	}
	return out
}

// LimitsHistory answers /v1/limits/history.
func (r *Report) LimitsHistory() api.LimitsHistoryAnswer {
	if r.Control == nil {
		return api.LimitsHistoryAnswer{Alone: true}
	}
	rec := r.Control.State().Record
	if rec == nil {
		return api.LimitsHistoryAnswer{}
	}
	l := &rec.Limits
	var out api.LimitsHistoryAnswer
	for _, a := range l.Applied {
		v := api.LimitsVersion{
			Version: versionText(a.Version), Files: a.Set, Kept: l.Set(a.Set) != nil, InForce: timeOf(l.StateOf(a.Version).From),
		}
		if c := commandOf(rec, func(c *control.Command) bool { return c.Version == a.Version }); c != nil {
			v.At, v.Author, v.Reason, v.Text = timeOf(c.At), c.Author, c.Reason, c.Text
		}
		out.Versions = append(out.Versions, v)
	}
	return out
}

// commandOf returns the latest command of the history that a condition holds
// for, nil for none.
func commandOf(rec *control.Record, is func(*control.Command) bool) *control.Command {
	for i := len(rec.History) - 1; i >= 0; i-- {
		if is(&rec.History[i]) {
			return &rec.History[i]
		}
	}
	return nil
}

// rulesCheck describes the rules in force for /readyz?verbose.
func rulesCheck(r *Report, s *ControlState) api.Check {
	out := api.Check{Name: "rules", State: api.CheckOK}
	if r.Limits != nil {
		if fault := r.Limits.State().Fault; fault != "" {
			return api.Check{Name: "rules", State: api.CheckWaiting, Text: fault}
		}
	}
	out.Text = fmt.Sprintf("rules in force: %d", len(r.Engine.Rules().Rules()))
	if s.Record != nil && s.Record.Limits.Latest() != nil {
		out.Text += fmt.Sprintf(", version %v of the control log", s.Record.Limits.Latest().Version)
	}
	return out
}

// limitsStats returns the metrics of the limits of the control log.
func limitsStats(r *Report, s *ControlState) telemetry.LimitsStats {
	out := telemetry.LimitsStats{InUse: s.Status.Used.Index, Pending: s.Status.Pending != (control.Version{})}
	if s.Record != nil {
		out.Overrides = len(s.Record.Limits.Overrides)
		if latest := s.Record.Limits.Latest(); latest != nil {
			out.Version = latest.Version.Index
		}
	}
	if r.Limits == nil {
		return out
	}
	is := r.Limits.State()
	out.Unusable = is.Fault != ""
	for _, d := range is.Domains {
		if d.Overruled {
			out.Diverged++
		}
	}
	return out
}

// limitsProblems returns the problems of limits as sentences, each with its
// remedy.
func limitsProblems(s *ControlState, is *LimitsState) []string {
	var out []string
	if is.Fault != "" {
		out = append(out, "this daemon cannot use the limits of the control log, and keeps the former ones: "+is.Fault)
	}
	var overruled []string
	for _, d := range is.Domains {
		if d.Overruled {
			overruled = append(overruled, d.Domain)
		}
	}
	if len(overruled) > 0 {
		slices.Sort(overruled)
		out = append(out, "files of limits differ from the control log, and do not count, in "+some(overruled)+
			": apply them with rld limits apply, or remove them")
	}
	// A recovery waits, too. Without limits that has no effect.
	if s.Status.Pending != (control.Version{}) && len(s.Record.Limits.Steps)+len(s.Record.Limits.Overrides) > 0 {
		out = append(out, "limits of version "+s.Status.Pending.String()+" wait for "+
			cmp.Or(some(s.Status.Waits), "regions that rld limits list names")+": what they lower acts, the rest does not")
	}
	return out
}

// some lists a few texts.
func some(all []string) string {
	const few = 5
	out := ""
	for i, text := range all[:min(few, len(all))] {
		if i > 0 {
			out += ", "
		}
		out += text
	}
	if len(all) > few {
		out += ", ..."
	}
	return out
}
