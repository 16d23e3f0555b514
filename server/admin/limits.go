package admin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/georld/rld/server/admin/api"
)

// Bounds of commands about limits, in bytes. The files of api.ApplyRules have 4
// MiB together, and most bytes of YAML have one or two in JSON.
const (
	maxApplyBytes    = 12 << 20
	maxOverrideBytes = 16 << 10
)

// submitWithin bounds the wait for the result of a command: the time of some
// elections. It is repeated under its id. One whose author waits for less ends
// earlier, but not before submitLeast, the time of an election.
const (
	submitWithin = 15 * time.Second
	submitLeast  = 5 * time.Second
)

// submitTime returns how long to wait for the result of a command whose author
// waits for so many seconds, 0 for as long as possible.
func submitTime(seconds float64) time.Duration {
	if !(seconds > 0 && seconds < submitWithin.Seconds()) {
		return submitWithin
	}
	return max(submitLeast, time.Duration(seconds*float64(time.Second)))
}

func limitsPage(r request) (any, error) {
	out := api.LimitsAnswer{Alone: true}
	if r.o.Limits != nil {
		out = r.o.Limits()
	}
	out.At = now()
	return out, nil
}

func limitsHistory(r request) (any, error) {
	out := api.LimitsHistoryAnswer{Alone: true}
	if r.o.LimitsHistory != nil {
		out = r.o.LimitsHistory()
	}
	out.At = now()
	return out, nil
}

// limitsOutcome serves the result of a command.
func limitsOutcome(r request) (any, error) {
	if r.o.LimitsCommand == nil {
		return nil, errNoControl
	}
	out, err := r.o.LimitsCommand(r.URL.Query().Get("id"))
	out.At = now()
	return out, failed(http.StatusConflict, err)
}

// limitsBody returns an example of the body of a command, and its bound.
func limitsBody(c api.LimitsCommandName) (string, int64) {
	switch c {
	case api.ApplyRules:
		return `{"files": [{"name": "...", "text": "..."}], "reason": "..."}`, maxApplyBytes
	case api.RollBackRules:
		return `{"version": "...", "reason": "..."}`, maxOverrideBytes
	case api.AdoptRules:
		return `{"reason": "..."}`, maxOverrideBytes
	case api.SetOverride:
		return `{"rule": "...", "requests": 10, "for_seconds": 3600}`, maxOverrideBytes
	case api.UnsetOverride:
		return `{"rule": "..."}`, maxOverrideBytes
	case api.BlockKey:
		return `{"key": "...", "for_seconds": 3600}`, maxOverrideBytes
	}
	return `{"key": "..."}`, maxOverrideBytes
}

// limitsCommand serves one command about limits.
func limitsCommand(c api.LimitsCommandName) func(request) (any, error) {
	want, most := limitsBody(c)
	return func(r request) (any, error) {
		var q api.LimitsRequest
		if err := r.readJSON(most, want, &q); err != nil {
			return nil, err
		}
		if err := checkLimits(c, &q); err != nil {
			return nil, fmt.Errorf("%w: want %s", err, want)
		}
		if r.o.ChangeLimits == nil {
			return nil, errNoControl
		}
		ctx, cancel := context.WithTimeout(r.Context(), submitTime(q.WaitSeconds))
		defer cancel()
		out, err := r.o.ChangeLimits(ctx, c, q)
		out.At = now()
		return out, failed(http.StatusConflict, err)
	}
}

// checkLimits returns an error unless a request has the fields of its command
// and no others. The daemon checks their values.
func checkLimits(c api.LimitsCommandName, q *api.LimitsRequest) error {
	values := q.Requests != nil || q.OverageBudget != nil || q.Mode != ""
	length := q.ForSeconds != 0 || q.From != nil
	rest := *q
	switch c {
	case api.ApplyRules:
		rest.Files = nil
	case api.RollBackRules:
		rest.Version = ""
	case api.AdoptRules:
	case api.SetOverride, api.UnsetOverride:
		rest.Domain, rest.Rule = "", ""
	default:
		rest.Key = ""
	}
	sets, blocks := c == api.SetOverride, c == api.BlockKey
	switch {
	case rest.Files != nil || rest.Version != "" || rest.Domain != "" || rest.Rule != "" || rest.Key != "",
		values && !sets, length && !sets && !blocks:
		return fmt.Errorf("fields of another command")
	case c == api.RollBackRules && q.Version == "",
		(sets || c == api.UnsetOverride) && q.Rule == "", (blocks || c == api.UnblockKey || c == api.ResetKey) && q.Key == "",
		sets && !values:
		return fmt.Errorf("a field is missing")
	case (sets || blocks) && q.ForSeconds <= 0:
		return fmt.Errorf("for_seconds is %v, not above 0", q.ForSeconds)
	}
	return nil
}
