package auth

import (
	"crypto/subtle"
	"log/slog"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/georld/rld/internal/loglimit"
)

// Need is the permission that a call requires.
type Need struct {
	Domain string
	Verb   Verb
	// AnyDomain is true for a call without a domain, such as a refund.
	AnyDomain bool
}

// Credentials identify a caller.
type Credentials struct {
	// Token is the bearer token, "" for none.
	Token string
	// Trusted is true for a caller whose client certificate the listener has
	// verified, and for one on a unix socket. It needs no token, and one that
	// it sends is ignored: a gateway may forward the field of its own client.
	Trusted bool
	// From is the address of the caller, for the log; nil for unknown.
	From net.Addr
}

// Authorizer holds the tokens in force, and admits calls. It is safe for
// concurrent use. A nil Authorizer admits every call: no tokens are required.
type Authorizer struct {
	log   *slog.Logger
	table atomic.Pointer[table]
	// refused counts the calls without a token in force, by reason.
	refused [reasons]atomic.Uint64
	lines   loglimit.Limiter

	mu sync.Mutex // of Replace
}

// table holds tokens by the first bytes of their hashes.
type table struct {
	entries map[uint64]*entry
	order   []*entry // of the file
}

// entry is a token in force.
type entry struct {
	Token
	limiter *rate.Limiter // nil for any rate
	counts  *counts
}

// counts outlive a replacement of the tokens, by name.
type counts struct {
	admitted atomic.Uint64
	refused  [reasons]atomic.Uint64
}

// NewAuthorizer returns an Authorizer with these tokens. The logger receives
// the first refusal of each kind and token in a minute.
func NewAuthorizer(tokens Tokens, log *slog.Logger) *Authorizer {
	a := &Authorizer{log: log}
	a.table.Store(&table{})
	a.Replace(tokens)
	return a
}

// Replace puts other tokens in force, at once for all calls from then on, those
// of streams that are open included. Counts are kept by name, and the rate of
// an unchanged token goes on.
func (a *Authorizer) Replace(tokens Tokens) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := make(map[string]*entry)
	for _, e := range a.table.Load().order {
		was[e.Name] = e
	}
	next := &table{entries: make(map[uint64]*entry, len(tokens))}
	for _, t := range tokens {
		e := &entry{Token: t, counts: new(counts)}
		old := was[t.Name]
		if old != nil {
			e.counts = old.counts
		}
		switch {
		case old != nil && old.Rate == t.Rate:
			e.limiter = old.limiter
		case t.Rate > 0:
			e.limiter = rate.NewLimiter(rate.Limit(t.Rate), int(math.Ceil(t.Rate)))
		}
		next.entries[short(&e.SHA256)] = e
		next.order = append(next.order, e)
	}
	a.table.Store(next)
}

// find returns the entry of a token, nil for an unknown one. The time it takes
// depends on the hash of the text that was sent, which reveals no token.
func (t *table) find(token string) *entry {
	sum := Hash(token)
	e := t.entries[short(&sum)]
	if e == nil || subtle.ConstantTimeCompare(sum[:], e.SHA256[:]) != 1 {
		return nil
	}
	return e
}

// maxToken is the length of the longest token that is hashed.
const maxToken = 1 << 10

// Admit returns nil if a caller may make a call, or a *Refusal. It neither
// waits nor allocates when it admits.
func (a *Authorizer) Admit(c Credentials, n Need, now time.Time) error {
	if a == nil || c.Trusted {
		return nil
	}
	if c.Token == "" {
		return a.refuse(c, &Refusal{Reason: Missing}, now)
	}
	switch e := a.find(c.Token); {
	case e == nil:
		return a.refuse(c, &Refusal{Reason: Unknown}, now)
	case !n.AnyDomain && !e.allows(n.Domain):
		return a.refuseToken(c, e, WrongDomain, n, now)
	case n.Verb < e.Verb:
		return a.refuseToken(c, e, WrongVerb, n, now)
	case e.limiter != nil && !e.limiter.AllowN(now, 1):
		return a.refuseToken(c, e, Rate, n, now)
	default:
		e.counts.admitted.Add(1)
		return nil
	}
}

// Known returns nil for a caller that Admit may admit, and a *Refusal for one
// without valid credentials. It counts no call of a token.
func (a *Authorizer) Known(c Credentials, now time.Time) error {
	switch {
	case a == nil || c.Trusted:
		return nil
	case c.Token == "":
		return a.refuse(c, &Refusal{Reason: Missing}, now)
	case a.find(c.Token) == nil:
		return a.refuse(c, &Refusal{Reason: Unknown}, now)
	}
	return nil
}

// find returns the entry of a token, nil for an unknown one.
func (a *Authorizer) find(token string) *entry {
	if len(token) > maxToken {
		return nil
	}
	return a.table.Load().find(token)
}

func (a *Authorizer) refuseToken(c Credentials, e *entry, reason Reason, n Need, now time.Time) error {
	e.counts.refused[reason].Add(1)
	r := &Refusal{Reason: reason, Token: e.Name, Rate: e.Rate, Need: n}
	a.named(c, r, now)
	return r
}

func (a *Authorizer) refuse(c Credentials, r *Refusal, now time.Time) error {
	a.refused[r.Reason].Add(1)
	a.named(c, r, now)
	return r
}

// each is the time between two log lines about the same.
const each = time.Minute

// named logs the first refusal of a kind in a minute.
func (a *Authorizer) named(c Credentials, r *Refusal, now time.Time) {
	if a.log != nil && a.lines.Due(r.Reason.String()+" "+r.Token, now, each) {
		a.log.Warn("a call was refused; further ones are only counted for a minute",
			"event", "auth", "reason", r.Reason.String(), "token", r.Token, "from", c.From, "problem", r.Error())
	}
}

// Count is a number of refused calls of a token, "" for none, for a reason.
type Count struct {
	Token  string
	Reason Reason
	Calls  uint64
}

// Stats are the counts of an Authorizer.
type Stats struct {
	// Admitted are the calls of each token in force, in the order of the file;
	// their Reason has no meaning.
	Admitted []Count
	// Refused are the refused calls by reason and token.
	Refused []Count
}

// Stats returns the counts. A nil Authorizer has none.
func (a *Authorizer) Stats() Stats {
	var s Stats
	if a == nil {
		return s
	}
	for _, r := range []Reason{Missing, Unknown} {
		s.Refused = append(s.Refused, Count{"", r, a.refused[r].Load()})
	}
	for _, e := range a.table.Load().order {
		s.Admitted = append(s.Admitted, Count{Token: e.Name, Calls: e.counts.admitted.Load()})
		for _, r := range []Reason{WrongDomain, WrongVerb, Rate} {
			s.Refused = append(s.Refused, Count{e.Name, r, e.counts.refused[r].Load()})
		}
	}
	return s
}
