package demo

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A burst lasts burstLasts of every burstEvery.
const (
	burstEvery = 7 * time.Second
	burstLasts = time.Second
)

// crowd is the clients of one rule.
type crowd struct {
	share float64 // part of all asks, over a long time
	keys  int     // how many keys they ask for
	name  string  // of the key, numbered if there are several
}

var crowds = [ruleCount]crowd{
	steady: {0.50, 60, "user"},
	spread: {0.32, 1, "everywhere"},
	burst:  {0.15, 1, "all"},
	login:  {0.03, 3, "account"},
}

// key returns the text of a key.
func (c *crowd) key(n int) string {
	if c.keys == 1 {
		return c.name
	}
	return fmt.Sprintf("%s-%d", c.name, n)
}

// The streams of random numbers, so that one draw more in one place does not
// reshuffle the others.
const (
	streamWAN = iota + 1
	streamMarks
	streamAges
	streamRoutes
	streamTraffic // and one for each rule after it
)

// Ask is one question of a client: of which rule, with which key, in which
// region.
type Ask struct{ Rule, Key, Region int }

// Traffic draws the calls of all clients. The same seed draws the same calls at
// the same times, whatever the answers. It is not safe for concurrent use.
type Traffic struct {
	regions int
	streams [ruleCount]stream
}

// stream is the asks of one rule: they come at random, at a rate.
type stream struct {
	rng    *rand.Rand
	rate   float64 // a second, without the factor
	factor float64
	next   time.Duration // when the next comes, on the clock of the stream
}

// NewTraffic returns clients that ask so often a second, in regions.
func NewTraffic(asksPerSecond, regions int, seed uint64) *Traffic {
	t := &Traffic{regions: regions}
	for i := range t.streams {
		s := &t.streams[i]
		s.rng = rand.New(rand.NewPCG(seed, streamTraffic+uint64(i)))
		s.rate, s.factor = float64(asksPerSecond)*crowds[i].share, 1
		if i == burst {
			s.rate *= float64(burstEvery) / float64(burstLasts)
		}
		s.next = s.gap()
	}
	return t
}

// never is later than any demo lasts.
const never = 1 << 55 // a year

// gap draws the time to the next ask.
func (s *stream) gap() time.Duration {
	if s.rate*s.factor <= 0 {
		return never
	}
	return time.Duration(s.rng.ExpFloat64() / (s.rate * s.factor) * float64(time.Second))
}

// Surge makes the asks of a rule come so many times as often from now on.
func (t *Traffic) Surge(now time.Duration, rule int, factor float64) {
	s := &t.streams[rule]
	s.factor = factor
	s.next = streamTime(rule, now) + s.gap() // what comes at random has no memory
}

// maxDue bounds the asks that one call of Due returns: more than that have
// piled up because the machine was busy, and are left out.
const maxDue = 20_000

// Due returns the asks that came until now since the last call, rule by rule,
// and how many were left out.
func (t *Traffic) Due(now time.Duration, into []Ask) (asks []Ask, left int) {
	asks = into[:0]
	for rule := range t.streams {
		s := &t.streams[rule]
		for until := streamTime(rule, now); s.next <= until; s.next += s.gap() {
			a := t.draw(rule, s.rng)
			if len(asks) < maxDue {
				asks = append(asks, a)
			} else {
				left++
			}
		}
	}
	return asks, left
}

// streamTime returns the clock of a rule's stream; that of a burst stream
// stands still between bursts.
func streamTime(rule int, now time.Duration) time.Duration {
	if rule != burst {
		return now
	}
	return now/burstEvery*burstLasts + min(now%burstEvery, burstLasts)
}

func (t *Traffic) draw(rule int, rng *rand.Rand) Ask {
	a := Ask{Rule: rule}
	a.Key = rng.IntN(crowds[rule].keys)
	if rule == steady {
		a.Region = a.Key % t.regions // owned
	} else {
		a.Region = rng.IntN(t.regions)
	}
	return a
}
