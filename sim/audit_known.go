package sim

import "time"

// cuts are up to when one replica knew each writer, by writer.
type cuts []time.Duration

// since returns what is known of writers that are known up to a time or later:
// nothing of the others. Of oneself all is known.
func (c cuts) since(from time.Duration, by int) cuts {
	if from == unheard {
		return c
	}
	out := make(cuts, len(c))
	for i, at := range c {
		out[i] = unheard
		if at >= from || i == by {
			out[i] = at
		}
	}
	return out
}

// view is what a replica knew a moment ago: later it knows no less.
type view struct {
	at    time.Duration
	known cuts
}

// known returns what a replica knows, or knew a moment ago: working it out
// takes longer the more daemons there are.
func (b *books) known(w *World, is *writer, shard int) cuts {
	k := earKey{to: is.index, shard: shard}
	v := b.views[k]
	if v == nil {
		v = &view{at: unheard}
		b.views[k] = v
	}
	n := len(w.Daemons())
	if v.at == unheard || w.Now()-v.at > time.Duration(n*n)*10*time.Microsecond || len(v.known) < len(b.writers.all) {
		v.known = b.hearing.known(&b.writers, is, shard, w.Now()+1, v.known)
		v.at = w.Now()
	}
	v.known[is.index] = w.Now() + 1
	return v.known
}

// known works out, for a shard of a replica, up to which virtual time it knows
// what each writer counted, by what came before a time. Inside a region a daemon tells everybody. From
// another region the way leads through two aggregators, and which ones depends
// on the key: the worst of all ways counts.
func (h *hearing) known(s *writers, is *writer, shard int, now time.Duration, out cuts) cuts {
	out = out[:0]
	for range s.all {
		out = append(out, unheard)
	}
	h.teams.agree(h, s)
	for r := range h.teams.regions {
		if r == is.region {
			for x := range s.all {
				if s.all[x].region == r {
					out[x] = h.direct(s, is.index, x, shard, now)
				}
			}
			continue
		}
		route := h.teams.route(is.region, r, shard)
		if !h.teams.agreed[route] || !h.across(s, is, r, shard, now, true, out) {
			h.across(s, is, r, shard, h.teams.settled[route], false, out)
		}
	}
	out[is.index] = now
	return out
}

// across fills in what is known of a region's writers as of a time. With
// strict only messages of daemons of one mind count; it returns false when
// there is none on some way.
func (h *hearing) across(s *writers, is *writer, region, shard int, at time.Duration, strict bool, out cuts) bool {
	senders := h.teams.candidates(s, region, at)
	receivers := h.teams.candidates(s, is.region, at)
	ok := at != unheard && len(senders) > 0
	for x := range s.all {
		if s.all[x].region == region {
			out[x] = unheard
		}
	}
	if !ok {
		return false
	}
	told := make([]time.Duration, len(senders)) // what of each sender arrived
	for i := range told {
		told[i] = at
	}
	for _, q := range append(receivers, is.index) {
		heard := at
		if q != is.index {
			c, heardIt := h.ears[earKey{is.index, q, shard}].before(at)
			if !heardIt || strict && c.sent < h.teams.minds[q].since {
				return false
			}
			heard = c.until
		}
		for i, p := range senders {
			c, heardIt := h.ears[earKey{q, p, shard}].before(heard)
			if !heardIt || strict && c.sent < h.teams.minds[p].since {
				return false
			}
			told[i] = min(told[i], c.until)
		}
	}
	for x := range s.all {
		if s.all[x].region != region {
			continue
		}
		out[x] = at
		for i, p := range senders {
			out[x] = min(out[x], h.direct(s, p, x, shard, told[i]))
		}
	}
	return true
}
