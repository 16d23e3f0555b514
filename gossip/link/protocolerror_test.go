package link

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/wire"
)

// TestProtocolError has one of two peers send a frame that the handler rejects
// as a protocol error.
func TestProtocolError(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		bad := n.start(t, helloOf(2, "eu", "bad"), nil)
		good := n.start(t, helloOf(3, "eu", "good"), nil)
		a.judge = func(_ Hello, frame []byte) error {
			switch string(frame) {
			case "invalid":
				return fmt.Errorf("frame: %w", &ProtocolError{Reason: "incarnation", Err: errors.New("an incarnation that is not its own")})
			case "late":
				return errors.New("too late")
			case "panic":
				panic("over a frame")
			}
			return nil
		}
		bad.Targets([]Target{to(a)})
		good.Targets([]Target{to(a)})
		synctest.Wait()
		bad.Send(1, []byte("late"))
		bad.Send(1, []byte("invalid"))
		bad.Send(1, []byte("not looked at"))
		good.Send(1, []byte("fine"))
		synctest.Wait()
		s := a.Stats()
		if s.Faulty != 1 || s.ProtocolErrors["incarnation"] != 1 || s.Accepted != 1 {
			t.Errorf("stats %+v", s)
		}
		if got := a.lines("peer dropped", "eu/bad (bad:7947)", "reason=incarnation", "an incarnation that is not its own"); got != 1 {
			t.Errorf("log: %s", a.log)
		}
		if got := fmt.Sprint(a.got(2), a.got(3)); got != "[late invalid] [fine]" {
			t.Errorf("frames %s", got)
		}
		if bad.Stats().RejectedPeers[reasonOther] != 1 {
			t.Errorf("stats of the peer: %+v", bad.Stats())
		}
		time.Sleep(minPenalty - 1)
		synctest.Wait()
		if got := a.Stats(); got.Accepted != 1 || got.Refused[ReasonPenalty] == 0 {
			t.Errorf("within the penalty: %+v", got)
		}
		time.Sleep(maxBackoff + minPenalty)
		synctest.Wait()
		if got := a.Stats().Accepted; got != 2 {
			t.Errorf("%d accepted after the penalty, want 2", got)
		}
		bad.Send(1, []byte("panic"))
		synctest.Wait()
		if got := a.Stats(); got.ProtocolErrors[ReasonPanic] != 1 || got.Accepted != 1 {
			t.Errorf("after a panic: %+v", got)
		}
		if a.lines("peer dropped", "reason=panic", "wait=2s") != 1 {
			t.Errorf("the second penalty is not longer: %s", a.log)
		}
		good.Send(1, []byte("still fine"))
		synctest.Wait()
		if got := len(a.got(3)); got != 2 {
			t.Errorf("%d frames of the good one", got)
		}
	})
}

// TestProtocolErrorOnTheWire has a dialer send what link itself refuses.
func TestProtocolErrorOnTheWire(t *testing.T) {
	bomb := packed(t, make([]byte, 64<<20))
	for _, c := range []struct {
		name, reason string
		items        []item
	}{
		{"second hello", ReasonItem, []item{{kind: kindHello, body: []byte("x")}}},
		{"members", ReasonItem, []item{{kind: kindMembers}}},
		{"unknown field", ReasonItem, []item{{kind: 9, body: []byte("x")}}},
		{"no field", ReasonItem, []item{{kind: 0}}},
		{"not zstd", ReasonPacked, []item{{kind: kindPacked, body: []byte("not zstd at all")}}},
		{"bomb", ReasonPacked, []item{{kind: kindPacked, body: bomb}}},
		{"long", ReasonSize, []item{{kind: kindFrame, body: make([]byte, wire.MaxFrameBytes+1)}}},
		{"longer", ReasonSize, []item{{kind: kindFrame, body: make([]byte, maxItem)}}},
		{"many", ReasonRate, repeat(item{kind: kindFrame, body: []byte("x")}, rateBurst*framesPerSecond+1)},
		{"much", ReasonRate, repeat(item{kind: kindFrame, body: make([]byte, 4<<20)}, rateBurst*16+1)},
		{"much, packed", ReasonRate, repeat(item{kind: kindPacked, body: packed(t, make([]byte, 4<<20))}, rateBurst*16+1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *network) {
				a := n.start(t, helloOf(1, "eu", "a"), nil)
				var before, after runtime.MemStats
				stream := n.greet(t, a, helloOf(2, "us", "b"))
				runtime.ReadMemStats(&before)
				for i := range c.items {
					if stream.SendMsg(&c.items[i]) != nil {
						break
					}
				}
				err := end(stream)
				runtime.ReadMemStats(&after)
				var refused *Refused
				if !errors.As(err, &refused) || refused.Reason != c.reason {
					t.Fatalf("the stream ended with %v, want %s", err, c.reason)
				}
				synctest.Wait() // it is logged after the stream has ended
				if s := a.Stats(); s.ProtocolErrors[c.reason] != 1 || s.Accepted != 0 {
					t.Errorf("stats %+v", s)
				}
				if a.lines("peer dropped", "us/b (b:7947)", "reason="+c.reason) != 1 {
					t.Errorf("log: %s", a.log)
				}
				if grown := after.TotalAlloc - before.TotalAlloc; c.name == "bomb" && grown > 32<<20 {
					t.Errorf("a bomb of 64 MiB made this process allocate %d bytes", grown)
				}
			})
		})
	}
}

// TestProtocolErrorFromAnAcceptor has the acceptor of an outgoing stream send a
// forbidden item.
func TestProtocolErrorFromAnAcceptor(t *testing.T) {
	foreign, _ := encodeMembers([]gossip.Member{helloOf(9, "ap", "x").Member})
	own, _ := encodeMembers([]gossip.Member{helloOf(2, "us", "b").Member})
	for _, c := range []struct {
		name, reason string
		items        []item
	}{
		{"frame", ReasonItem, []item{{kind: kindFrame, body: []byte("x")}}},
		{"members of another region", ReasonMembers, []item{{kind: kindMembers, body: foreign}}},
		{"not members", ReasonMembers, []item{{kind: kindMembers, body: []byte("invalid")}}},
		{"too many lists", ReasonRate, repeat(item{kind: kindMembers, body: own}, rateBurst*listsPerSecond+1)},
		{"long", ReasonSize, []item{{kind: kindMembers, body: make([]byte, maxItem)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *network) {
				a := n.start(t, helloOf(1, "eu", "a"), nil)
				n.impersonate(t, "b:7947", greetingFrom(helloOf(2, "us", "b")), c.items...)
				a.Targets([]Target{{Addr: "b:7947"}})
				synctest.Wait()
				if s := a.Stats(); s.ProtocolErrors[c.reason] != 1 || s.Outgoing != 0 {
					t.Errorf("stats %+v, stream %+v", s, a.outgoing("b:7947"))
				}
				if a.lines("peer dropped", "addr=b:7947", "reason="+c.reason) != 1 {
					t.Errorf("log: %s", a.log)
				}
			})
		})
	}
}

// TestHugeFrame announces a frame of 1 GiB and sends none of it.
func TestHugeFrame(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		good := n.start(t, helloOf(3, "eu", "good"), nil)
		good.Targets([]Target{to(a)})
		synctest.Wait()
		conn, err := n.dial(t.Context(), a.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := conn.Write(rawCall(encoded(t, greetingFrom(helloOf(2, "us", "b"))), 1<<30)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		runtime.ReadMemStats(&after)
		if s := a.Stats(); s.ProtocolErrors[ReasonSize] != 1 || s.Accepted != 1 {
			t.Errorf("stats %+v", s)
		}
		if a.lines("peer dropped", "remote=bufconn", "reason=size", "1073741824") != 1 {
			t.Errorf("log: %s", a.log)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
			t.Errorf("the announcement made this process allocate %d bytes", grown)
		}
		if good.Send(1, []byte("x")); len(good.happened()) == 0 {
			t.Error("the other peer has no stream")
		}
	})
}

func TestPenalties(t *testing.T) {
	var p penalties
	now := time.Unix(0, 0)
	keys := penaltyKeys(&proof{}, "10.0.0.1:5000", helloOf(2, "eu", "b"))
	want := minPenalty
	for range 10 {
		if got := p.add(keys, now); got != want {
			t.Errorf("penalty %v, want %v", got, want)
		}
		now = now.Add(want)
		if left := p.remaining(keys, now); left > 0 {
			t.Errorf("%v left after the penalty", left)
		}
		want = min(maxPenalty, 2*want)
	}
	now = now.Add(penaltyMemory + 1)
	if got := p.add(keys, now); got != minPenalty {
		t.Errorf("penalty %v after good behavior, want %v", got, minPenalty)
	}
	other := penaltyKeys(&proof{}, "10.0.0.2:5000", helloOf(2, "eu", "b"))
	if left := p.remaining(other, now); left > 0 {
		t.Error("a peer has another one kept out that lives elsewhere")
	}
	for i := range 3 * maxPenalties {
		p.add(penaltyKeys(&proof{}, fmt.Sprintf("10.0.0.1:%d", i), helloOf(2, "eu", fmt.Sprint(i))), now)
		now = now.Add(time.Millisecond)
	}
	if len(p.of) > maxPenalties {
		t.Errorf("%d penalties are remembered", len(p.of))
	}
}

func TestReasonsAreBounded(t *testing.T) {
	var r reasons
	for i := range 1000 {
		r.add(fmt.Sprint(i))
	}
	if got := r.read(); len(got) > maxReasons+1 || got[reasonOther] != 1000-maxReasons {
		t.Errorf("%d reasons, %d others", len(got), got[reasonOther])
	}
}

func TestBackoff(t *testing.T) {
	for range 100 {
		var b backoff
		most := minBackoff
		for range 20 {
			most = min(maxBackoff, 2*most)
			if got := b.next(); got < minBackoff || got > most {
				t.Fatalf("wait of %v, want %v to %v", got, minBackoff, most)
			}
		}
		if b.most != maxBackoff {
			t.Errorf("the bound is %v, want %v", b.most, maxBackoff)
		}
		b.reset()
		if got := b.next(); got > 2*minBackoff {
			t.Errorf("wait of %v after a reset", got)
		}
	}
}

// TestBackoffIsReset has a peer flap, and then be stable.
func TestBackoffIsReset(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		a.Targets([]Target{{Addr: "b:7947"}})
		time.Sleep(time.Minute)
		b := n.start(t, helloOf(2, "eu", "b"), nil)
		time.Sleep(maxBackoff + stableAfter)
		synctest.Wait()
		b.Close()
		n.start(t, helloOf(3, "eu", "b"), nil)
		time.Sleep(3 * minBackoff)
		synctest.Wait()
		if got := a.outgoing("b:7947").State; got != StateUp {
			t.Errorf("after a stable stream the next one is %s", got)
		}
	})
}

func repeat(it item, n int) []item {
	all := make([]item, n)
	for i := range all {
		all[i] = it
	}
	return all
}

func packed(t *testing.T, b []byte) []byte {
	t.Helper()
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	return e.EncodeAll(b, nil)
}

func TestPack(t *testing.T) {
	p := newPacker()
	defer p.close()
	for _, frame := range []string{
		"x", strings.Repeat("x", minPacked), strings.Repeat("count", 1<<18), noise(minPacked), noise(1 << 20),
	} {
		it := p.pack([]byte(frame))
		got := it.body
		if it.kind == kindPacked {
			var err error
			if got, err = p.unpack(it.body, nil); err != nil {
				t.Fatal(err)
			}
		}
		if string(got) != frame || len(it.body) > len(frame) {
			t.Errorf("a frame of %d bytes became a %s of %d, or changed", len(frame), it.kind, len(it.body))
		}
		it.free()
	}
}

// noise does not pack.
func noise(n int) string {
	b := make([]byte, n)
	state := uint64(1)
	for i := range b {
		state = state*6364136223846793005 + 1442695040888963407
		b[i] = byte(state >> 56)
	}
	return string(b)
}
