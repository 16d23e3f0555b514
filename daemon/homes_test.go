package daemon

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/internal/breaker"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
)

// ownersAt returns the homes of a daemon in us whose clock the caller turns.
func ownersAt(at *time.Duration, log *bytes.Buffer) *owners {
	c := strictConfig{
		forwardTimeout: 50 * time.Millisecond, forwardMargin: 100 * time.Millisecond,
		breaker: breaker.Config{Calls: 4, Window: 10 * time.Second, Open: time.Minute, Probe: probeFor},
	}
	h := newOwners(c, "us", slog.New(slog.NewTextHandler(log, nil)))
	h.now = func() time.Duration { return *at }
	return h
}

func livePeer(id crdt.Incarnation, name, region string) gossip.Peer {
	return gossip.Peer{ID: id, Name: name, Region: region, Ready: true}
}

// TestReach says how long each home is waited for.
func TestReach(t *testing.T) {
	var at time.Duration
	h := ownersAt(&at, &bytes.Buffer{})
	near, far := livePeer(1, "us-0", "us"), livePeer(2, "eu-0", "eu")
	h.peers([]gossip.Peer{near, far})
	for _, tt := range []struct {
		of   crdt.Incarnation
		want time.Duration
	}{{1, 50 * time.Millisecond}, {2, unknownTrip + 100*time.Millisecond}, {3, 50 * time.Millisecond}} {
		if wait, open := h.Reach(tt.of); wait != tt.want || !open {
			t.Errorf("%v: %v, %v, want %v", tt.of, wait, open, tt.want)
		}
	}
	h.measure([]node.Link{{Peer: near, RTT: time.Second}, {Peer: far, RTT: 80 * time.Millisecond}})
	if wait, _ := h.Reach(1); wait != 50*time.Millisecond {
		t.Errorf("a home of the own region has %v", wait)
	}
	if wait, _ := h.Reach(2); wait != 180*time.Millisecond {
		t.Errorf("a home 80 ms away has %v", wait)
	}
	h.measure([]node.Link{{Peer: far, RTT: -1}})
	if wait, _ := h.Reach(2); wait != 180*time.Millisecond {
		t.Errorf("a home whose round trip is not known any more has %v", wait)
	}
}

// TestCircuit goes through the states of a breaker, and what is said of them.
func TestCircuit(t *testing.T) {
	var at time.Duration
	var log bytes.Buffer
	h := ownersAt(&at, &log)
	h.peers([]gossip.Peer{livePeer(1, "us-0", "us")})
	for i := range 4 {
		if !h.claim(1, at) {
			t.Fatalf("call %d is not let through", i)
		}
		h.done(1, at, i < 2)
		h.done(1, at, i < 2) // of the same moment: it tells nothing new
		at += moment
	}
	if _, open := h.Reach(1); open {
		t.Error("half of four calls failed, and it is asked")
	}
	if h.claim(1, at) {
		t.Error("an open circuit lets a call through")
	}
	at += time.Minute
	h.look(at)
	if _, open := h.Reach(1); !open {
		t.Error("a half-open circuit lets nobody through")
	}
	if !h.claim(1, at) || h.claim(1, at) {
		t.Error("a half-open circuit lets not exactly one call through")
	}
	if _, open := h.Reach(1); open {
		t.Error("a second call is let through beside the one that tries")
	}
	at += probeFor // who tried went away
	if !h.claim(1, at) {
		t.Error("a call that never came back keeps the circuit open")
	}
	h.done(1, at, true)
	if _, open := h.Reach(1); !open {
		t.Error("an answer does not close the circuit")
	}
	for _, want := range []string{
		"event=circuit_breaker_open owner=us/us-0 failed=2 calls=4", "event=circuit_breaker_half_open owner=us/us-0", "event=circuit_breaker_closed owner=us/us-0",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log.String())
		}
	}
	for state, want := range []uint64{1, 1, 1} {
		if n := h.transitions[state].Load(); n != want {
			t.Errorf("%d transitions to %v, want %d", n, breaker.State(state), want)
		}
	}
}

// TestCircuitOutlivesACut keeps the breaker of a daemon that is gone for a while,
// and starts anew with the next incarnation.
func TestCircuitOutlivesACut(t *testing.T) {
	at := time.Second
	h := ownersAt(&at, &bytes.Buffer{})
	peer := []gossip.Peer{livePeer(1, "eu-0", "eu")}
	h.peers(peer)
	for range 4 {
		h.claim(1, at)
		h.done(1, at, false)
		at += moment
	}
	h.peers(nil)
	if c := h.circuits(); len(c) != 1 || c[0].state != breaker.Open || c[0].name != "eu-0" {
		t.Errorf("circuits %+v of a daemon that is gone", c)
	}
	h.peers(peer)
	if _, open := h.Reach(1); open {
		t.Error("a cut that healed closes the circuit")
	}
	h.peers([]gossip.Peer{livePeer(2, "eu-0", "eu")})
	if _, open := h.Reach(2); !open {
		t.Error("another incarnation has the circuit of the former")
	}
	at += goneKept + time.Second
	h.peers(nil)
	at++
	h.peers(nil)
	if c := h.circuits(); len(c) != 0 {
		t.Errorf("circuits %+v are kept for ever", c)
	}
}

// TestWaysAreBounded has more daemons come and go than are remembered.
func TestWaysAreBounded(t *testing.T) {
	at := time.Second
	h := ownersAt(&at, &bytes.Buffer{})
	for i := range 3 * maxWays / 100 {
		var live []gossip.Peer
		for j := range 100 {
			live = append(live, livePeer(crdt.Incarnation(100*i+j+1), fmt.Sprint("us-", j), "us"))
		}
		h.peers(live)
	}
	if n := len(*h.ways.Load()); n > maxWays {
		t.Errorf("%d ways are remembered, at most %d", n, maxWays)
	}
}
