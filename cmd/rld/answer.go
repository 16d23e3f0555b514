package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"google.golang.org/protobuf/types/known/durationpb"

	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/web"
)

// writeTable prints an answer for people: the verdict, and a row a descriptor.
func writeTable(w io.Writer, q *rldv1.CheckRequest, a *rldv1.CheckResponse) error {
	t := newTable("DESCRIPTOR", "ANSWER", "RULE", "LIMIT", "REMAINING", "RESET", "RETRY", "NOTE")
	for i, s := range a.GetStatuses() {
		remaining, reset := "-", "-"
		if s.GetLimit() != nil {
			remaining = fmt.Sprint(s.GetRemaining())
			reset = shown(s.GetResetAfter())
		}
		t.row(descriptorText(q.GetDescriptors()[i]), codeText(s.GetCode()), or(s.GetRule(), "-"), limitText(s),
			remaining, reset, retryText(s), or(strings.Join(notes(s), ", "), "-"))
	}
	_, err := io.WriteString(w, verdict(q, a)+"\n\n"+t.String())
	return err
}

// verdict is the answer to the whole question.
func verdict(q *rldv1.CheckRequest, a *rldv1.CheckResponse) string {
	out := strings.ToUpper(codeText(a.GetCode()))
	if by := a.GetRefusedBy(); by != "" {
		out += " by " + by
	}
	if q.GetPeek() {
		out += " (nothing was charged)"
	}
	return out
}

func descriptorText(d *rldv1.Descriptor) string {
	parts := make([]string, len(d.GetEntries()))
	for i, e := range d.GetEntries() {
		parts[i] = e.GetKey() + "=" + e.GetValue()
	}
	return printable(strings.Join(parts, ","))
}

// limitText is a limit in few words: "10/second token_bucket, burst 20".
func limitText(s *rldv1.Status) string {
	l := s.GetLimit()
	if l == nil {
		return "-"
	}
	unit := strings.ToLower(l.GetUnit().String())
	if m := l.GetUnitMultiplier(); m > 1 {
		unit = fmt.Sprintf("%d %ss", m, unit)
	}
	out := fmt.Sprintf("%d/%s %s", l.GetRequestsPerUnit(), unit, l.GetAlgorithm())
	if l.GetBurst() > 0 {
		out += fmt.Sprintf(", burst %d", l.GetBurst())
	}
	return out
}

// notes lists the special circumstances of an answer.
func notes(s *rldv1.Status) []string {
	var out []string
	if s.GetLimit() == nil {
		switch {
		case s.GetUnlimited():
			out = append(out, "unlimited")
		case s.GetRule() == "":
			out = append(out, "no rule matches")
		default:
			out = append(out, "the rule has no limit")
		}
	}
	switch {
	case !neverFits(s):
	case holds(s.GetLimit()) == 0:
		out = append(out, "the limit is 0")
	default:
		out = append(out, "more than the limit holds")
	}
	if n := s.GetLimit().GetName(); n != "" {
		out = append(out, "named "+printable(n))
	}
	if m := s.GetMode(); m != rldv1.Mode_ENFORCED {
		out = append(out, strings.ToLower(m.String())+" mode")
	}
	switch reason := s.GetReason(); {
	case reason == "":
	case s.GetCode() != rldv1.Code_DENIED:
		out = append(out, "would be denied: "+printable(reason))
	case reason != string(server.ReasonLimit):
		out = append(out, "reason: "+printable(reason))
	}
	if d := s.GetDelay().AsDuration(); d > 0 {
		out = append(out, "hold back "+d.String())
	}
	if s.GetDegraded() {
		out = append(out, "degraded: "+printable(s.GetDegradedReason()))
	}
	return out
}

// neverFits reports whether a descriptor was denied hits that its limit never
// holds: those have no time to come back at.
func neverFits(s *rldv1.Status) bool {
	return s.GetCode() == rldv1.Code_DENIED && s.GetLimit() != nil && s.GetRetryAfter() == nil
}

// holds is the capacity of a limit when none of it is used.
func holds(l *rldv1.Limit) uint32 {
	if l.GetRequestsPerUnit() > 0 && l.GetBurst() > 0 {
		return l.GetBurst()
	}
	return l.GetRequestsPerUnit()
}

// retryText is when to come back, for people.
func retryText(s *rldv1.Status) string {
	if neverFits(s) {
		return "never"
	}
	return shown(s.GetRetryAfter())
}

func codeText(c rldv1.Code) string { return strings.ToLower(c.String()) }

// shown is a duration for people; "-" for none.
func shown(d *durationpb.Duration) string {
	if d == nil {
		return "-"
	}
	return millis(d).String()
}

// millis is a duration rounded up to the millisecond: to come back then is
// never too early.
func millis(d *durationpb.Duration) time.Duration {
	return (d.AsDuration() + time.Millisecond - 1).Truncate(time.Millisecond)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return printable(s)
}

// printable keeps what came from elsewhere from steering the terminal or
// breaking the table.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// answerJSON is the JSON form of an answer, as in /v1/check: that of the
// message, with amounts as numbers and without default members.
type answerJSON struct {
	Allowed   bool             `json:"allowed"`
	Code      string           `json:"code"`
	RefusedBy string           `json:"refused_by,omitempty"`
	Statuses  []web.StatusBody `json:"statuses"`
}

// writeJSON prints an answer for programs.
func writeJSON(w io.Writer, _ *rldv1.CheckRequest, a *rldv1.CheckResponse) error {
	out := answerJSON{
		Allowed:   a.GetCode() == rldv1.Code_ALLOWED,
		Code:      a.GetCode().String(),
		RefusedBy: a.GetRefusedBy(),
		Statuses:  make([]web.StatusBody, 0, len(a.GetStatuses())),
	}
	for _, s := range a.GetStatuses() {
		out.Statuses = append(out.Statuses, newStatusBody(s))
	}
	return indented(w, out)
}

func newStatusBody(s *rldv1.Status) web.StatusBody {
	out := web.StatusBody{
		Code:       s.GetCode().String(),
		Rule:       s.GetRule(),
		RetryAfter: secondsText(s.GetRetryAfter()),
		Delay:      secondsText(s.GetDelay()),
		Unlimited:  s.GetUnlimited(),
	}
	out.Degraded, out.DegradedReason = s.GetDegraded(), s.GetDegradedReason()
	out.Reason = server.Reason(s.GetReason())
	if m := s.GetMode(); m != rldv1.Mode_ENFORCED {
		out.Mode = m.String()
	}
	if l := s.GetLimit(); l != nil {
		remaining := s.GetRemaining()
		out.Remaining, out.ResetAfter = &remaining, secondsText(s.GetResetAfter())
		out.Limit = &web.LimitBody{
			Requests: l.GetRequestsPerUnit(), Unit: l.GetUnit().String(), Multiplier: l.GetUnitMultiplier(),
			Algorithm: l.GetAlgorithm(), Name: l.GetName(),
		}
		if burst := l.GetBurst(); burst > 0 {
			out.Limit.Burst = &burst
		}
	}
	return out
}

// secondsText is the JSON form of a duration, "1.5s"; "" for none.
func secondsText(d *durationpb.Duration) string {
	if d == nil {
		return ""
	}
	return strconv.FormatFloat(millis(d).Seconds(), 'f', -1, 64) + "s"
}
