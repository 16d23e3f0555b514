package main

import (
	"encoding/json"
	"io"
	"strconv"

	"google.golang.org/protobuf/types/known/durationpb"

	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// answerJSON is an answer for programs, in the form in which /v1/check has it:
// that of the message, with amounts as numbers and members left out that say
// nothing.
type answerJSON struct {
	Allowed   bool         `json:"allowed"`
	Code      string       `json:"code"`
	RefusedBy string       `json:"refused_by,omitempty"`
	Statuses  []statusJSON `json:"statuses"`
}

type statusJSON struct {
	Code           string     `json:"code"`
	Rule           string     `json:"rule,omitempty"`
	Limit          *limitJSON `json:"limit,omitempty"`
	Remaining      *uint64    `json:"remaining,omitempty"` // there, if 0 too, where there is a limit
	ResetAfter     string     `json:"reset_after,omitempty"`
	Mode           string     `json:"mode,omitempty"`
	RetryAfter     string     `json:"retry_after,omitempty"`
	Delay          string     `json:"delay,omitempty"`
	Degraded       bool       `json:"degraded,omitempty"`
	DegradedReason string     `json:"degraded_reason,omitempty"`
	Unlimited      bool       `json:"unlimited,omitempty"`
}

type limitJSON struct {
	RequestsPerUnit uint32 `json:"requests_per_unit"`
	Unit            string `json:"unit"`
	UnitMultiplier  uint32 `json:"unit_multiplier"`
	Algorithm       string `json:"algorithm"`
	Burst           uint32 `json:"burst,omitempty"`
	Name            string `json:"name,omitempty"`
}

// writeJSON prints an answer for programs.
func writeJSON(w io.Writer, _ *rldv1.CheckRequest, a *rldv1.CheckResponse) error {
	out := answerJSON{
		Allowed:   a.GetCode() == rldv1.Code_ALLOWED,
		Code:      a.GetCode().String(),
		RefusedBy: a.GetRefusedBy(),
		Statuses:  make([]statusJSON, 0, len(a.GetStatuses())),
	}
	for _, s := range a.GetStatuses() {
		out.Statuses = append(out.Statuses, newStatusJSON(s))
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(out)
}

func newStatusJSON(s *rldv1.Status) statusJSON {
	out := statusJSON{
		Code:           s.GetCode().String(),
		Rule:           s.GetRule(),
		RetryAfter:     secondsText(s.GetRetryAfter()),
		Delay:          secondsText(s.GetDelay()),
		Degraded:       s.GetDegraded(),
		DegradedReason: s.GetDegradedReason(),
		Unlimited:      s.GetUnlimited(),
	}
	if m := s.GetMode(); m != rldv1.Mode_ENFORCED {
		out.Mode = m.String()
	}
	if l := s.GetLimit(); l != nil {
		remaining := s.GetRemaining()
		out.Remaining, out.ResetAfter = &remaining, secondsText(s.GetResetAfter())
		out.Limit = &limitJSON{
			RequestsPerUnit: l.GetRequestsPerUnit(),
			Unit:            l.GetUnit().String(),
			UnitMultiplier:  l.GetUnitMultiplier(),
			Algorithm:       l.GetAlgorithm(),
			Burst:           l.GetBurst(),
			Name:            l.GetName(),
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
