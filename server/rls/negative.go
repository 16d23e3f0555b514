package rls

import (
	"context"
	"slices"

	"github.com/georld/rld/node"
	"github.com/georld/rld/server"
)

// decide checks the call of a question, and gives its negative hits back.
func (s *Service) decide(ctx context.Context, q *question) error {
	switch {
	case len(q.negative) == 0:
		return s.engine.Check(ctx, q.draft.Call)
	case !s.settings.NegativeHits:
		return q.refusal()
	}
	return s.decideApart(ctx, q)
}

// decideApart decides the descriptors that charge hits as a call of their own,
// and then gives back those of the others, whatever the decision is. As
// upstream has it, a descriptor that gives hits back is never over its limit.
// Nothing is charged or given back where it returns an error.
func (s *Service) decideApart(ctx context.Context, q *question) error {
	c, back := q.draft.Call, server.NewCall()
	defer server.FreeCall(back)
	if err := c.Validate(); err != nil {
		return err
	}
	all := slices.Clone(c.Descriptors)
	c.Descriptors = c.Descriptors[:0]
	back.Domain = c.Domain
	for i := range all {
		if q.negates(i) {
			back.Descriptors = append(back.Descriptors, all[i])
		} else {
			c.Descriptors = append(c.Descriptors, all[i])
		}
	}
	statuses := make([]node.Status, 0, len(all))
	var charged []node.Status
	decision := node.Decision{Allowed: true, Refused: -1}
	if len(c.Descriptors) > 0 {
		if err := s.engine.Check(ctx, c); err != nil {
			return err
		}
		charged, decision = c.Statuses, c.Decision
	}
	if err := s.engine.RefundHits(back); err != nil {
		return err
	}
	refunded := back.Statuses
	for i := range all {
		from := &charged
		if q.negates(i) {
			from = &refunded
		}
		st := (*from)[0]
		*from = (*from)[1:]
		if q.negates(i) {
			settle(&st)
		}
		statuses = append(statuses, st)
	}
	c.Descriptors, c.Statuses, c.Decision = all, statuses, decision
	return nil
}

// settle makes a status one of a descriptor that gives hits back: it is not
// over its limit. Its limit is a copy, which outlives the call of the status.
func settle(st *node.Status) {
	st.Over, st.Never, st.Retry, st.Delay = false, false, 0, 0
	if st.Limit != nil {
		l := *st.Limit
		st.Limit = &l
	}
}
