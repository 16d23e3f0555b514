package link

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/control"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/wire"
)

func TestExchange(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		b := n.start(t, helloOf(2, "us", "b"), nil)
		b.SendMembers([]gossip.Member{b.hello.Member})
		a.Targets([]Target{to(b)})
		b.Targets([]Target{to(a)})
		synctest.Wait()
		if got := a.happened(); got != "met b:7947 0000000000000002" {
			t.Fatalf("events of a: %q", got)
		}
		for _, frame := range []string{"one", "two", "three"} {
			if !a.Send(2, []byte(frame)) || !b.Send(1, []byte("back "+frame)) {
				t.Fatalf("%q was not sent", frame)
			}
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"one", "two", "three"}, b.got(1)); diff != "" {
			t.Error("frames of a at b: ", diff)
		}
		if diff := cmp.Diff([]string{"back one", "back two", "back three"}, a.got(2)); diff != "" {
			t.Error("frames of b at a: ", diff)
		}
		if diff := cmp.Diff([]gossip.Member{b.hello.Member}, a.list(2)); diff != "" {
			t.Error("members of b at a: ", diff)
		}
		s := a.Stats()
		want := Traffic{Frames: 3, Bytes: uint64(len("onetwothree"))}
		if s.Outgoing != 1 || s.Accepted != 1 || s.Sent != want {
			t.Errorf("stats of a: %+v", s)
		}
		streams := a.Streams()
		if len(streams) != 2 || streams[0].State != StateUp || streams[0].Hello != b.hello ||
			!streams[1].Incoming || streams[1].Hello != b.hello {
			t.Errorf("streams of a: %+v", streams)
		}
		if a.Send(3, []byte("x")) {
			t.Error("a frame was sent to nobody")
		}
	})
}

func TestMembersListsAreMerged(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		b := n.start(t, helloOf(2, "us", "b"), nil)
		a.Targets([]Target{to(b)})
		synctest.Wait()
		second := helloOf(3, "us", "c").Member
		for range 100 {
			b.SendMembers([]gossip.Member{b.hello.Member})
			b.SendMembers([]gossip.Member{second, b.hello.Member, second})
		}
		time.Sleep(2 * membersInterval)
		synctest.Wait()
		if diff := cmp.Diff([]gossip.Member{b.hello.Member, second}, a.list(2)); diff != "" {
			t.Error(diff)
		}
		if got := b.Stats().Sent.Frames; got > 2 {
			t.Errorf("%d lists were sent, want the first and the newest", got)
		}
		bad := second
		bad.Addr = "nowhere"
		b.SendMembers([]gossip.Member{b.hello.Member, bad})
		time.Sleep(2 * membersInterval)
		if diff := cmp.Diff([]gossip.Member{b.hello.Member}, a.list(2)); diff != "" {
			t.Error(diff)
		}
		if b.lines("cannot be sent", "left_out=1") != 1 {
			t.Errorf("nothing says that a member was left out: %s", b.log)
		}
	})
}

func TestRestartOfAPeer(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		b := n.start(t, helloOf(2, "eu", "b"), nil)
		a.Targets([]Target{to(b)})
		synctest.Wait()
		b.Close()
		synctest.Wait()
		if a.Send(2, []byte("x")) {
			t.Error("a frame was sent to who is gone")
		}
		again := n.start(t, helloOf(3, "eu", "b"), nil)
		time.Sleep(maxBackoff)
		synctest.Wait()
		want := "met b:7947 0000000000000002; lost b:7947 0000000000000002; met b:7947 0000000000000003"
		if got := a.happened(); got != want {
			t.Errorf("events %q, want %q", got, want)
		}
		if a.Send(2, []byte("old")) || !a.Send(3, []byte("new")) {
			t.Error("frames do not follow the incarnation")
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"new"}, again.got(1)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestSameAddress has two incarnations of one daemon at one address: the newer
// one wins, as the older one's end may not have been noticed.
func TestSameAddress(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		old := n.start(t, helloOf(2, "eu", "b"), nil)
		old.Targets([]Target{to(a)})
		synctest.Wait()
		young := n.start(t, helloOf(3, "eu", "b"), func(c *Config) {
			c.Identity = func() control.Identity { return identityOf(2) }
		})
		young.Targets([]Target{to(a)})
		synctest.Wait()
		streams := a.Streams()
		if len(streams) != 1 || streams[0].Hello.Member.ID != 3 {
			t.Errorf("accepted streams: %+v, want the one of the new incarnation", streams)
		}
		if old.Stats().RejectedPeers[reasonReplaced] != 1 {
			t.Errorf("stats of the old incarnation: %+v", old.Stats())
		}
	})
}

// TestAliases dials one daemon by more addresses than it takes streams of one
// incarnation.
func TestAliases(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		b := n.start(t, helloOf(2, "eu", "b"), nil)
		var targets []Target
		for _, alias := range []string{"b", "b1", "b2", "b3", "b4"} {
			n.listeners[alias+":7947"] = n.listeners["b:7947"]
			targets = append(targets, Target{Addr: alias + ":7947"})
		}
		a.Targets(targets[:2])
		synctest.Wait()
		if got := a.Stats().Outgoing; got != 2 {
			t.Fatalf("%d streams, want 2", got)
		}
		a.Send(2, []byte("once"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"once"}, b.got(1)); diff != "" {
			t.Error(diff)
		}
		a.Targets(targets[1:2])
		synctest.Wait()
		if !a.Send(2, []byte("by the other")) {
			t.Error("no stream is left")
		}
		a.Targets(targets)
		synctest.Wait()
		if got := b.Stats().Accepted; got != streamsEach {
			t.Errorf("%d streams of one incarnation, want %d", got, streamsEach)
		}
	})
}

func TestTargetsComeAndGo(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		b := n.start(t, helloOf(2, "eu", "b"), nil)
		one, wan := to(b), to(b)
		wan.WAN = true
		a.Targets([]Target{one})
		synctest.Wait()
		a.Targets([]Target{one})
		synctest.Wait()
		if n.dials != 1 {
			t.Errorf("%d dials, want 1: the target stayed", n.dials)
		}
		a.Targets([]Target{wan})
		a.Targets(nil)
		a.Targets([]Target{wan})
		synctest.Wait()
		want := "met b:7947 0000000000000002; lost b:7947 0000000000000002; met b:7947 0000000000000002"
		if got := a.happened(); got != want {
			t.Errorf("events %q, want %q", got, want)
		}
		a.Targets(nil)
		synctest.Wait()
		if s := a.Stats(); s.Outgoing != 0 || a.Send(2, []byte("x")) || len(a.Streams()) != 0 {
			t.Errorf("a stream is left: %+v", s)
		}
		if len(a.ending) != 0 {
			t.Errorf("%d targets did not end", len(a.ending))
		}
	})
}

func TestTooManyTargets(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		var all []Target
		for i := range maxTargets + 10 {
			all = append(all, Target{Addr: fmt.Sprintf("x%d:1", i)})
		}
		a.Targets(all)
		if got := len(a.Streams()); got != maxTargets {
			t.Errorf("%d targets, want %d", got, maxTargets)
		}
		a.Targets(nil)
		synctest.Wait()
	})
}

// TestUnreachable counts the dials of a target that is not there.
func TestUnreachable(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		a.Targets([]Target{{Addr: "b:7947"}})
		time.Sleep(time.Minute)
		s := a.outgoing("b:7947")
		// 5 s at most and 2.5 s on average, and a few short waits before.
		if s.Attempts < 12 || s.Attempts > 60 {
			t.Errorf("%d attempts in a minute", s.Attempts)
		}
		if s.State != StateWaiting || s.Err == nil || !strings.Contains(s.Err.Error(), "refused by the test") {
			t.Errorf("stream: %+v", s)
		}
		if got := a.lines("no stream to a peer", "refused by the test"); got != 1 {
			t.Errorf("%d lines in a minute, want 1: %s", got, a.log)
		}
		n.start(t, helloOf(2, "eu", "b"), nil)
		time.Sleep(maxBackoff)
		synctest.Wait()
		if got := a.outgoing("b:7947").State; got != StateUp {
			t.Errorf("the stream is %s, want up", got)
		}
	})
}

func TestSendIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		b := n.start(t, helloOf(2, "eu", "b"), nil)
		a.Targets([]Target{to(b)})
		synctest.Wait()
		if a.Send(2, nil) || a.Send(2, make([]byte, wire.MaxFrameBytes+1)) {
			t.Error("a frame beyond the bounds was taken")
		}
		if got := a.Stats().Dropped; got != 2 {
			t.Errorf("%d dropped, want 2", got)
		}
		if !a.Send(2, make([]byte, wire.MaxFrameBytes)) {
			t.Error("a frame of the greatest size was not taken")
		}
		synctest.Wait()
		if got := b.got(1); len(got) != 1 || len(got[0]) != wire.MaxFrameBytes {
			t.Errorf("%d frames arrived", len(got))
		}
	})
}

// TestFrozenPeer has one peer stop reading and sends on: no time passes in
// Send, others get everything, and the stream is dialed anew.
func TestFrozenPeer(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		b := n.start(t, helloOf(2, "eu", "b"), nil)
		c := n.start(t, helloOf(3, "eu", "c"), nil)
		a.Targets([]Target{to(b), to(c)})
		synctest.Wait()
		n.freeze("b:7947")
		start := time.Now()
		sent := 0
		for i := range 400 {
			if a.Send(2, make([]byte, 32<<10)) {
				sent++
			}
			if !a.Send(3, []byte{byte(i)}) {
				t.Fatalf("frame %d to c was not taken", i)
			}
			synctest.Wait()
		}
		if passed := time.Since(start); passed != 0 {
			t.Errorf("sending took %v", passed)
		}
		if got := len(c.got(1)); got != 400 {
			t.Errorf("%d of 400 frames reached c", got)
		}
		if s := a.outgoing("b:7947"); s.Queued != queueFrames || s.Dropped != uint64(400-sent) || sent > 2*queueFrames {
			t.Errorf("%d sent, stream %+v", sent, s)
		}
		time.Sleep(writeWithin + time.Second)
		synctest.Wait()
		s := a.outgoing("b:7947")
		if s.State != StateUp || !errors.Is(s.Err, ErrStuck) || s.Queued != 0 || s.Dropped != uint64(400-sent+queueFrames) {
			t.Errorf("stream to b: %+v, want a new one", s)
		}
		if !a.Send(2, []byte("again")) {
			t.Error("no frame was taken after the redial")
		}
	})
}

// TestSilentPeer has a peer freeze that nothing much is sent to.
func TestSilentPeer(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		b := n.start(t, helloOf(2, "eu", "b"), nil)
		a.Targets([]Target{to(b)})
		synctest.Wait()
		n.freeze("b:7947")
		time.Sleep(2*(keepaliveAfter+keepaliveWithin) + writeWithin)
		synctest.Wait()
		if s := a.outgoing("b:7947"); s.State != StateUp || s.Attempts != 2 {
			t.Errorf("stream to b: %+v, want a new one", s)
		}
		if got := b.Stats().Accepted; got != 1 {
			t.Errorf("%d accepted streams at b, want 1", got)
		}
	})
}

// TestHandshakeTakesForever dials a listener that sends nothing.
func TestHandshakeTakesForever(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		lis := n.listen("mute:7947")
		go func() {
			for {
				conn, err := lis.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
			}
		}()
		a.Targets([]Target{{Addr: "mute:7947"}})
		time.Sleep(handshakeWithin + time.Millisecond)
		synctest.Wait()
		if s := a.outgoing("mute:7947"); s.State != StateWaiting || s.Err == nil {
			t.Errorf("stream %+v, want a failed handshake", s)
		}
		lis.Close()
	})
}

// TestWAN sends the same frames near and far: only what goes far is packed.
func TestWAN(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		near := n.start(t, helloOf(2, "eu", "near"), nil)
		far := n.start(t, helloOf(3, "us", "far"), nil)
		a.Targets([]Target{to(near), {Addr: far.addr, Region: "us", WAN: true}})
		synctest.Wait()
		frame := strings.Repeat("a count of many ", 4<<10)
		for range 10 {
			a.Send(2, []byte(frame))
			a.Send(3, []byte(frame))
			synctest.Wait()
		}
		for _, d := range []*daemon{near, far} {
			got := d.got(1)
			if len(got) != 10 || got[9] != frame {
				t.Errorf("%d frames reached %s, or they changed", len(got), d.addr)
			}
		}
		if got := n.written(near.addr); got < 10*len(frame) {
			t.Errorf("%d bytes went near, want them as they are", got)
		}
		if got := n.written(far.addr); got > len(frame) {
			t.Errorf("%d bytes went far, want them packed", got)
		}
	})
}

func TestOtherRulesAreWarnedOfOnce(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		other := helloOf(2, "eu", "b")
		other.Rules = 8
		b := n.start(t, other, nil)
		for range 3 {
			a.Targets([]Target{to(b)})
			synctest.Wait()
			a.Targets(nil)
			synctest.Wait()
		}
		if got := a.lines("level=WARN", "rules=0000000000000008", "own=0000000000000007"); got != 1 {
			t.Errorf("%d lines about rules, want 1: %s", got, a.log)
		}
	})
}

func TestCloseOfAHost(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		b := n.start(t, helloOf(2, "eu", "b"), nil)
		a.Targets([]Target{to(b), {Addr: "nobody:1"}})
		b.Targets([]Target{to(a)})
		synctest.Wait()
		a.Close()
		if got := a.happened(); !strings.HasSuffix(got, "lost b:7947 0000000000000002") {
			t.Errorf("events %q", got)
		}
		if a.Send(2, []byte("x")) {
			t.Error("a closed host sends")
		}
		a.Targets([]Target{to(b)})
		a.Close()
		synctest.Wait()
		if got := b.Stats(); got.Accepted != 0 || got.Outgoing != 0 {
			t.Errorf("b still has streams: %+v", got)
		}
	})
}
