package auth

import (
	"strconv"
	"time"
)

// Reason is why a call was refused.
type Reason uint8

// The reasons.
const (
	// Missing is a call without credentials.
	Missing Reason = iota
	// Unknown is a token that is not in force.
	Unknown
	// WrongDomain is a token that may not call the domain.
	WrongDomain
	// WrongVerb is a token that may only read, with a call that charges.
	WrongVerb
	// Rate is a token that has made too many calls.
	Rate
	reasons
)

// String returns the label of metrics.
func (r Reason) String() string {
	return [...]string{"no_token", "unknown_token", "domain", "verb", "rate"}[r]
}

// Kind is the answer to a refused call, by which edges choose a code.
type Kind uint8

// The kinds.
const (
	// Unauthenticated is UNAUTHENTICATED and 401.
	Unauthenticated Kind = iota
	// Denied is PERMISSION_DENIED and 403.
	Denied
	// Exhausted is RESOURCE_EXHAUSTED and 429.
	Exhausted
)

// Kind returns the kind of answer.
func (r Reason) Kind() Kind {
	switch r {
	case Missing, Unknown:
		return Unauthenticated
	case Rate:
		return Exhausted
	default:
		return Denied
	}
}

// Challenge is the field WWW-Authenticate of an answer 401.
const Challenge = `Bearer realm="rld"`

// Refusal is the error of a call that an Authorizer does not admit. No limit
// was asked, and nothing was charged.
type Refusal struct {
	Reason Reason
	// Token is the name of the token, "" for a missing or unknown one.
	Token string
	// Rate is that of the token, in calls a second.
	Rate float64
	Need Need
}

// Error describes the refusal for the caller. It repeats no text that the
// caller sent.
func (r *Refusal) Error() string {
	switch r.Reason {
	case Missing:
		return "no credentials: send the header authorization: Bearer TOKEN"
	case Unknown:
		return "the token is not known here: rld token new makes one, and auth.tokens_file holds its hash"
	case WrongDomain:
		return "the token " + r.Token + " may not call this domain (domains in auth.tokens_file)"
	case WrongVerb:
		return "the token " + r.Token + " may only read: ask with peek (verb in auth.tokens_file)"
	case Rate:
		return "the token " + r.Token + " makes more than its " + strconv.FormatFloat(r.Rate, 'f', -1, 64) +
			" calls per second (rate in auth.tokens_file); no limit was asked and nothing was charged"
	}
	return "refused"
}

// RetryAfter is when a refused call may succeed, 0 for never.
func (r *Refusal) RetryAfter() time.Duration {
	if r.Reason != Rate {
		return 0
	}
	return max(time.Second, time.Duration(float64(time.Second)/r.Rate))
}
