package link

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// secrets returns Config.Fingerprints of secrets that a byte names each.
func secrets(names ...byte) func() Fingerprints {
	var all Fingerprints
	for _, name := range names {
		all = append(all, Fingerprint{name})
	}
	return func() Fingerprints { return all }
}

// TestTwoSecrets has two daemons with one or two secrets each: a stream needs a
// common one, in any place.
func TestTwoSecrets(t *testing.T) {
	for _, tt := range []struct{ a, b []byte }{
		{[]byte{1}, []byte{1}},
		{[]byte{1}, []byte{1, 2}},
		{[]byte{1, 2}, []byte{1}},
		{[]byte{1, 2}, []byte{1, 2}},
		{[]byte{1, 2}, []byte{2}},
		{[]byte{2}, []byte{1, 2}},
		{[]byte{1}, []byte{2}},
		{[]byte{1, 3}, []byte{2}},
		{[]byte{1, 3}, []byte{2, 4}},
	} {
		bubble(t, func(t *testing.T, n *network) {
			a := n.start(t, helloOf(1, "eu", "a"), func(c *Config) { c.Fingerprints = secrets(tt.a...) })
			b := n.start(t, helloOf(2, "us", "b"), func(c *Config) { c.Fingerprints = secrets(tt.b...) })
			a.Targets([]Target{to(b)})
			time.Sleep(time.Second)
			synctest.Wait()
			up := a.outgoing(b.addr).State == StateUp
			common := slices.ContainsFunc(tt.a, func(x byte) bool { return slices.Contains(tt.b, x) })
			if up != common {
				t.Errorf("a has %d, b has %d: a stream: %v", tt.a, tt.b, up)
			}
		})
	}
}

// TestLackingSecret: a daemon learns that a peer has the next secret, too, from
// another handshake, and the stream goes on.
func TestLackingSecret(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		var theirs atomic.Pointer[func() Fingerprints]
		set := func(names ...byte) { theirs.Store(new(secrets(names...))) }
		set(1)
		a := n.start(t, helloOf(1, "eu", "a"), func(c *Config) { c.Fingerprints = secrets(1, 2) })
		b := n.start(t, helloOf(2, "us", "b"), func(c *Config) { c.Fingerprints = func() Fingerprints { return (*theirs.Load())() } })
		a.Targets([]Target{to(b)})
		lacking := func(want ...string) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			if got := a.Lacking(Fingerprint{2}); !slices.Equal(got, want) {
				t.Errorf("%v lack the next secret, want %v", got, want)
			}
			if s := a.outgoing(b.addr); s.State != StateUp || s.Attempts != 1 {
				t.Errorf("the stream: %+v", s)
			}
			synctest.Wait() // the handshake is over
		}
		lacking("us/b")
		lacking("us/b")
		set(1, 2)
		lacking("us/b") // by the handshake before
		lacking()
		set(2)
		lacking()
	})
}
