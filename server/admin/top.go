package admin

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// TopOrder is what keys are ranked by.
type TopOrder string

// The orders.
const (
	TopByHits   TopOrder = "hits"
	TopByDenied TopOrder = "denied"
)

// MaxTop bounds the keys of an answer.
const MaxTop = 100

// TopQuery is what is asked of /v1/top.
type TopQuery struct {
	By TopOrder
	// N is how many keys are wanted, 1 to MaxTop.
	N int
	// Reveal asks for the text of the keys. It is asked by this machine alone.
	Reveal bool
}

// TopAnswer is the answer of /v1/top: the keys that are asked for most, or refused
// most, at the daemon that is asked. The JSON names are stable: programs read
// them. What is not known is null, which is another thing than 0.
type TopAnswer struct {
	// At is as in MembersAnswer.
	At   time.Time `json:"at"`
	Self DaemonRef `json:"self"`
	By   TopOrder  `json:"by"`
	// SpanSeconds is the time that rates are of.
	SpanSeconds float64 `json:"span_seconds"`
	// HotPerSecond is the rate from which a key is hot, 0 for none.
	HotPerSecond uint64 `json:"hot_per_second"`
	// Reveals says that the daemon keeps texts of keys; it need not have those of all.
	Reveals bool `json:"reveals"`
	// Keys come in the order asked for, of equals the one whose hash is smaller
	// first. Never null.
	Keys []TopKey `json:"keys"`
}

// TopKey is one key under one rule.
type TopKey struct {
	Domain string `json:"domain"`
	// Rule is its path, Name that of its limit, "" for none.
	Rule string `json:"rule"`
	Name string `json:"name"`
	// Key is the hash that it is counted under, 32 hexadecimal digits; Text what was
	// asked for, key=value,key=value, "" unless that was wanted and is known.
	Key  string `json:"key"`
	Text string `json:"text"`
	// HitsPerSecond is all that was asked for, DeniedPerSecond what of it was refused.
	HitsPerSecond   float64 `json:"hits_per_second"`
	DeniedPerSecond float64 `json:"denied_per_second"`
	// Share is how much of the limit is in use.
	Share *float64 `json:"share_ratio"`
	// Hot says that it is at or above hot_key.threshold.
	Hot bool `json:"hot"`
}

// topPage serves what ask returns.
func topPage(ask func(TopQuery) TopAnswer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := readTopQuery(r)
		if err != nil {
			fail(w, http.StatusBadRequest, err)
			return
		}
		// What a gateway asked for names people.
		if q.Reveal {
			if err := fromHere(r); err != nil {
				fail(w, http.StatusForbidden, fmt.Errorf("texts of keys are not shown: %w", err))
				return
			}
		}
		if ask == nil {
			failNothing(w, "ranks no keys")
			return
		}
		answer := ask(q)
		answer.By = q.By
		answer.Keys = append([]TopKey{}, answer.Keys...)
		for i := range answer.Keys {
			answer.Keys[i].settle(q.Reveal)
		}
		if answer.rank(q.By); len(answer.Keys) > q.N {
			answer.Keys = answer.Keys[:q.N]
		}
		answer.At = time.Now().UTC()
		writeJSON(w, answer)
	}
}

// settle takes out what JSON cannot carry, and what was not asked for.
func (k *TopKey) settle(reveal bool) {
	if !reveal {
		k.Text = ""
	}
	for _, f := range []*float64{&k.HitsPerSecond, &k.DeniedPerSecond} {
		if math.IsNaN(*f) || math.IsInf(*f, 0) {
			*f = 0
		}
	}
	k.Share = finite(k.Share)
}

// rank puts the keys into their order.
func (a *TopAnswer) rank(by TopOrder) {
	slices.SortFunc(a.Keys, func(x, y TopKey) int {
		first, second := cmp.Compare(y.HitsPerSecond, x.HitsPerSecond), cmp.Compare(y.DeniedPerSecond, x.DeniedPerSecond)
		if by == TopByDenied {
			first, second = second, first
		}
		return cmp.Or(first, second, cmp.Compare(x.Key, y.Key), cmp.Compare(x.Domain, y.Domain), cmp.Compare(x.Rule, y.Rule))
	})
}

func readTopQuery(r *http.Request) (TopQuery, error) {
	values := r.URL.Query()
	q := TopQuery{By: TopByHits, N: 10}
	if text := values.Get("by"); text != "" {
		q.By = TopOrder(text)
		if q.By != TopByHits && q.By != TopByDenied {
			return q, fmt.Errorf("by: %q is no order: want %s or %s", clip(text), TopByHits, TopByDenied)
		}
	}
	if text := values.Get("n"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > MaxTop {
			return q, fmt.Errorf("n: %q is not a number from 1 to %d", clip(text), MaxTop)
		}
		q.N = n
	}
	switch text := values.Get("reveal"); text {
	case "", "false":
	case "true":
		q.Reveal = true
	default:
		return q, fmt.Errorf("reveal: %q is neither true nor false", clip(text))
	}
	return q, nil
}

// finite returns v, nil for what JSON cannot carry, as a rate over no time at all.
func finite(v *float64) *float64 {
	if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
		return nil
	}
	return v
}

// failNothing answers for a daemon that does not do what is asked for.
func failNothing(w http.ResponseWriter, what string) {
	fail(w, http.StatusNotImplemented, errors.New("this daemon "+what))
}
