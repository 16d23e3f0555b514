package web

import (
	"net/http"
	"strconv"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// form is the layout of a decision's body.
type form uint8

const (
	// checkForm is the JSON form of rld.v1.CheckResponse, with every status.
	checkForm form = iota
	// rateLimitForm is flat: the binding limit alone, for clients of an API.
	rateLimitForm
)

// exceededType is the problem type of the rate limit headers' draft, which
// names the limits in the member violated-policies.
const (
	exceededType  = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	exceededTitle = "Request cannot be satisfied as assigned quota has been exceeded"
)

// appendBody appends the body of a decision.
func (v *verdict) appendBody(b []byte, f form) []byte {
	j := document{b}
	j.open()
	switch {
	case !v.allowed:
		v.appendDenial(&j)
	case f == checkForm:
		if v.x.id != 0 {
			j.text("id", strconv.FormatUint(v.x.id, 10))
		}
		j.bool("allowed", true)
		j.text("code", "ALLOWED")
	default:
		j.bool("allowed", true)
		v.appendBinding(&j)
		appendDegraded(&j, v.degraded)
	}
	if f == checkForm {
		j.openList("statuses")
		for i := range v.x.call.Statuses {
			appendStatus(&j, &v.x.call.Statuses[i])
		}
		j.closeList()
	}
	j.close()
	return append(j.b, '\n')
}

// appendDenial appends the members of a refusal's problem.
func (v *verdict) appendDenial(j *document) {
	if v.closed {
		j.text("type", "about:blank")
		j.text("title", http.StatusText(v.status))
		j.uint("status", uint64(v.status))
		j.text("error", codeUnavailable)
	} else {
		j.text("type", exceededType)
		j.text("title", exceededTitle)
		j.uint("status", uint64(v.status))
		j.text("error", codeExceeded)
	}
	j.name("message")
	j.b = append(v.appendMessage(append(j.b, '"')), '"')
	if v.x.id != 0 {
		j.text("id", strconv.FormatUint(v.x.id, 10))
	}
	j.bool("allowed", false)
	v.appendBinding(j)
	j.uint("retry_after", v.retryAfter)
	appendDegraded(j, v.degraded)
	if v.closed {
		return // no policy was violated, as far as anybody knows
	}
	j.openList("violated-policies")
	statuses := v.x.call.Statuses
	for i := range statuses {
		if violates(&statuses[i]) && !namedBefore(statuses, i) {
			j.item(displayName(&statuses[i]))
		}
	}
	j.closeList()
	if url := v.settings.DocumentationURL; url != "" {
		j.text("documentation_url", url)
	}
}

// violates reports whether a status is one of the reasons of a refusal.
func violates(s *node.Status) bool { return s.Limit != nil && s.Refuses() }

// namedBefore reports whether one of the reasons before status i has its name.
func namedBefore(statuses []node.Status, i int) bool {
	name := displayName(&statuses[i])
	for k := range statuses[:i] {
		if violates(&statuses[k]) && displayName(&statuses[k]) == name {
			return true
		}
	}
	return false
}

// appendBinding appends the binding limit; nothing when there is none.
func (v *verdict) appendBinding(j *document) {
	s := v.limited()
	if s == nil {
		return
	}
	j.text("rule", rulePath(s))
	j.uint("limit", uint64(s.Limit.Requests))
	j.uint("window", windowSeconds(s))
	if quota.Of(s.Limit).Drains() {
		j.uint("burst", uint64(s.Limit.Burst))
	}
	j.uint("remaining", s.Remaining)
	j.int("reset", v.resetAt(s))
	j.uint("reset_after", seconds(s.Reset))
	if v.delay > 0 {
		j.uint("delay_ms", millis(v.delay))
	}
}

// appendDegraded appends why an answer is less than exact, if it is.
func appendDegraded(j *document, d node.Degraded) {
	if d != node.NotDegraded {
		j.bool("degraded", true)
		j.text("degraded_reason", d.String())
	}
}

// appendStatus appends the JSON form of rld.v1.Status. Members with the
// default value are left out, as in any JSON form of a message, but not the
// remaining of a limit.
func appendStatus(j *document, s *node.Status) {
	j.open()
	if s.Limit != nil && s.Refuses() {
		j.text("code", "DENIED")
	} else {
		j.text("code", "ALLOWED")
	}
	if s.Rule != nil {
		j.text("rule", s.Rule.Path)
	}
	if s.Limit != nil {
		appendLimit(j, s.Limit)
		j.uint("remaining", s.Remaining)
		appendDuration(j, "reset_after", s.Reset)
		appendMode(j, s.Limit)
	}
	if s.Limit != nil && s.Refuses() && !s.Never {
		appendDuration(j, "retry_after", s.Retry)
	}
	if s.Delay > 0 {
		appendDuration(j, "delay", s.Delay)
	}
	appendDegraded(j, s.Degraded)
	if s.Unlimited {
		j.bool("unlimited", true)
	}
	j.close()
}

func appendLimit(j *document, l *rules.Limit) {
	j.openObject("limit")
	j.uint("requests_per_unit", uint64(l.Requests))
	j.name("unit")
	j.b = append(j.b, '"')
	for _, c := range []byte(l.Unit.String()) {
		j.b = append(j.b, c&^0x20) // the proto enum's names are upper-case
	}
	j.b = append(j.b, '"')
	j.uint("unit_multiplier", uint64(l.Multiplier))
	j.text("algorithm", l.Algorithm.String())
	if quota.Of(l).Drains() {
		j.uint("burst", uint64(l.Burst))
	}
	if l.Name != "" {
		j.text("name", l.Name)
	}
	j.close()
}

func appendMode(j *document, l *rules.Limit) {
	switch {
	case l.Shadow:
		j.text("mode", "SHADOW")
	case l.Quota:
		j.text("mode", "QUOTA")
	}
}

// appendDuration appends a google.protobuf.Duration: decimal seconds and "s",
// to the millisecond, rounded up.
func appendDuration(j *document, name string, d time.Duration) {
	j.name(name)
	ms := millis(d)
	j.b = strconv.AppendUint(append(j.b, '"'), ms/1_000, 10)
	if ms %= 1_000; ms > 0 {
		j.b = append(j.b, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
	}
	j.b = append(j.b, 's', '"')
}
