package fakenet

import (
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
)

func TestNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		for _, addr := range []string{"", "h:1", "10.0.0.1", "10.0.0.1:0", "0.0.0.0:1"} {
			if _, err := n.Transport(addr); err == nil {
				t.Errorf("took %q", addr)
			}
		}
		a, b := newHost(t, n, 1), newHost(t, n, 2)
		if _, err := n.Transport(host(1)); err == nil {
			t.Error("one address for two")
		}
		arrives := func(from, to memberlist.NodeAwareTransport, addr string) bool {
			from.WriteTo([]byte("x"), addr)
			select {
			case <-to.PacketCh():
				return true
			default:
				return false
			}
		}
		steps := []struct {
			what   string
			do     func()
			there  bool // from a to b
			back   bool
			stream bool
		}{
			{"whole", func() {}, true, true, true},
			{"cut", func() { n.Cut(host(1), host(2)) }, false, false, false},
			{"healed", n.Heal, true, true, true},
			{"cut there", func() { n.CutOneWay(host(1), host(2)) }, false, true, false},
			{"and back", func() { n.Heal(); n.CutOneWay(host(2), host(1)) }, true, false, false},
			{"apart", func() { n.Heal(); n.CutAll(host(2)) }, false, false, false},
			{"healed again", n.Heal, true, true, true},
		}
		for _, s := range steps {
			s.do()
			if there, back := arrives(a, b, host(2)), arrives(b, a, host(1)); there != s.there || back != s.back {
				t.Errorf("%s: there %v, back %v", s.what, there, back)
			}
			begin := time.Now()
			c, err := a.DialTimeout(host(2), time.Second)
			if (err == nil) != s.stream {
				t.Errorf("%s: stream: %v", s.what, err)
			}
			if err == nil {
				(<-b.StreamCh()).Close()
				c.Close()
			} else if took := time.Since(begin); took != time.Second {
				t.Errorf("%s: gave up after %v", s.what, took)
			}
		}
		if !arrives(a, a, host(1)) {
			t.Error("a host does not hear itself")
		}
		for range 2 * maxPackets {
			a.WriteTo([]byte("x"), host(2)) // does not wait
		}
		b.Shutdown()
		if _, err := a.DialTimeout(host(2), time.Minute); err == nil || isTimeout(err) {
			t.Errorf("nobody is there: %v", err)
		}
		newHost(t, n, 2) // free again
	})
}

// Bytes lost on a stream are not skipped.
func TestStreamCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		a, b := newHost(t, n, 1), newHost(t, n, 2)
		near, err := a.DialTimeout(host(2), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		far := <-b.StreamCh()
		defer near.Close()
		defer far.Close()
		go near.Write([]byte("one"))
		got := make([]byte, 3)
		if _, err := io.ReadFull(far, got); err != nil || string(got) != "one" {
			t.Fatalf("%q, %v", got, err)
		}
		n.Cut(host(1), host(2))
		near.Write([]byte("two"))
		n.Heal()
		near.Write([]byte("three"))
		far.SetReadDeadline(time.Now().Add(time.Second))
		if k, err := far.Read(got); !isTimeout(err) {
			t.Errorf("%q, %v", got[:k], err)
		}
		if near.RemoteAddr().String() != host(2) || far.RemoteAddr().String() != host(1) {
			t.Errorf("%v, %v", near.RemoteAddr(), far.RemoteAddr())
		}
	})
}

func host(i int) string { return fmt.Sprintf("10.0.0.%d:7946", i) }

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

func newHost(t *testing.T, n *Network, i int) memberlist.NodeAwareTransport {
	t.Helper()
	tr, err := n.Transport(host(i))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Shutdown() })
	return tr
}
