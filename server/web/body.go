package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
)

// Media types of the bodies.
const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
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

// answerBody is the body of a decision. Its members are written in this order.
type answerBody struct {
	*problem
	ID      uint64 `json:"id,string,omitempty"`
	Allowed bool   `json:"allowed"`
	Verdict string `json:"code,omitempty"`
	*bindingBody
	Reason     server.Reason `json:"reason,omitempty"`
	WouldDeny  bool          `json:"would_deny,omitempty"`
	RetryAfter uint64        `json:"retry_after,omitempty"`
	degradedBody
	Violated         []string     `json:"violated-policies,omitzero"`
	DocumentationURL string       `json:"documentation_url,omitempty"`
	Statuses         []StatusBody `json:"statuses,omitzero"`
}

// bindingBody is the limit that binds a call. Times are in seconds.
type bindingBody struct {
	Rule       string  `json:"rule"`
	Limit      uint32  `json:"limit"`
	Window     uint64  `json:"window"`
	Burst      *uint32 `json:"burst,omitempty"` // of buckets alone
	Remaining  uint64  `json:"remaining"`
	Reset      int64   `json:"reset"`
	ResetAfter uint64  `json:"reset_after"`
	DelayMs    uint64  `json:"delay_ms,omitempty"`
}

// degradedBody is the reason why an answer is less than exact, if it is.
type degradedBody struct {
	Degraded       bool   `json:"degraded,omitempty"`
	DegradedReason string `json:"degraded_reason,omitempty"`
}

// StatusBody is the JSON form of rld.v1.Status. Members with the default value
// are left out, as in any JSON form of a message, but not the remaining of a
// limit. Durations are those of protobuf's JSON.
type StatusBody struct {
	Code       string     `json:"code"`
	Rule       string     `json:"rule,omitempty"`
	Limit      *LimitBody `json:"limit,omitempty"`
	Remaining  *uint64    `json:"remaining,omitempty"`
	ResetAfter string     `json:"reset_after,omitempty"`
	Mode       string     `json:"mode,omitempty"`
	RetryAfter string     `json:"retry_after,omitempty"`
	Delay      string     `json:"delay,omitempty"`
	degradedBody
	Unlimited bool          `json:"unlimited,omitempty"`
	Reason    server.Reason `json:"reason,omitempty"`
}

// LimitBody is the JSON form of rld.v1.Limit.
type LimitBody struct {
	Requests   uint32  `json:"requests_per_unit"`
	Unit       string  `json:"unit"`
	Multiplier uint32  `json:"unit_multiplier"`
	Algorithm  string  `json:"algorithm"`
	Burst      *uint32 `json:"burst,omitempty"` // of buckets alone
	Name       string  `json:"name,omitempty"`
}

// encode returns a body as a line of JSON.
func encode(body any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(body); err != nil {
		panic(err) // the bodies hold nothing that JSON cannot
	}
	return b.Bytes()
}

// body returns the body of a decision.
func (v *verdict) body(f form) answerBody {
	a := answerBody{ID: v.x.id, Allowed: v.allowed}
	a.WouldDeny = v.wouldDeny
	if f == checkForm {
		a.Statuses = []StatusBody{}
		for i := range v.x.call.Statuses {
			a.Statuses = append(a.Statuses, newStatusBody(&v.x.call.Statuses[i]))
		}
		if v.allowed {
			a.Verdict = "ALLOWED"
			return a
		}
	}
	a.bindingBody, a.degradedBody = v.bindingBody(), newDegradedBody(v.degraded)
	if v.allowed {
		return a
	}
	a.RetryAfter = v.retryAfter
	if s := v.limited(); s != nil {
		a.Reason = server.ReasonOf(s)
	}
	if v.closed { // no policy was violated, as far as anybody knows
		a.problem = newProblem(v.status, codeUnavailable, "%s", v.message())
		return a
	}
	a.problem = &problem{
		Type: exceededType, Title: exceededTitle, Status: v.status, Code: codeExceeded, Message: v.message(),
	}
	a.Violated, a.DocumentationURL = violated(v.x.call.Statuses), v.settings.DocumentationURL
	return a
}

// violated returns the names of the limits that refuse a call, each once.
func violated(statuses []node.Status) []string {
	names := []string{}
	for i := range statuses {
		if name := displayName(&statuses[i]); violates(&statuses[i]) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// violates reports whether a status is one of the reasons of a refusal.
func violates(s *node.Status) bool { return s.Limit != nil && s.Refuses() }

// bindingBody returns the binding limit, nil when there is none.
func (v *verdict) bindingBody() *bindingBody {
	s := v.limited()
	if s == nil {
		return nil
	}
	return &bindingBody{
		Rule: rulePath(s), Limit: s.Limit.Requests, Window: windowSeconds(s), Burst: burst(s.Limit),
		Remaining: s.Remaining, Reset: v.resetAt(s), ResetAfter: server.Seconds(s.Reset), DelayMs: server.Millis(v.delay),
	}
}

// burst returns the burst of a bucket, nil for other limits.
func burst(l *rules.Limit) *uint32 {
	if quota.Of(l).Drains() {
		return &l.Burst
	}
	return nil
}

func newDegradedBody(d node.Degraded) degradedBody {
	return degradedBody{Degraded: d != node.NotDegraded, DegradedReason: d.String()}
}

func newStatusBody(s *node.Status) StatusBody {
	b := StatusBody{Code: "ALLOWED", degradedBody: newDegradedBody(s.Degraded), Unlimited: s.Unlimited}
	if s.Rule != nil {
		b.Rule = s.Rule.Path
	}
	if s.Delay > 0 {
		b.Delay = durationText(s.Delay)
	}
	l := s.Limit
	if l == nil {
		return b
	}
	b.Limit = &LimitBody{
		Requests: l.Requests, Unit: strings.ToUpper(l.Unit.String()), Multiplier: l.Multiplier,
		Algorithm: l.Algorithm.String(), Burst: burst(l), Name: l.Name,
	}
	b.Remaining, b.ResetAfter = &s.Remaining, durationText(s.Reset)
	switch {
	case l.Shadow:
		b.Mode = "SHADOW"
	case l.Quota:
		b.Mode = "QUOTA"
	}
	b.Reason = server.ReasonOf(s)
	if s.Refuses() {
		b.Code = "DENIED"
		if !s.Never {
			b.RetryAfter = durationText(s.Retry)
		}
	}
	return b
}

// durationText returns a google.protobuf.Duration in JSON: decimal seconds and
// "s", to the millisecond, rounded up.
func durationText(d time.Duration) string {
	ms := server.Millis(d)
	if ms%1_000 == 0 {
		return fmt.Sprintf("%ds", ms/1_000)
	}
	return fmt.Sprintf("%d.%03ds", ms/1_000, ms%1_000)
}

// reply writes an answer that is no decision.
func reply(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", contentType)
	send(w, r, status, body)
}

// send writes an answer whose other headers are set. It sets the length so that
// HEAD has it too.
func send(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	w.Header()["Content-Length"] = []string{fmt.Sprint(len(body))}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // an error means that the caller has gone
	}
}
