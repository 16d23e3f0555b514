package link

import (
	"testing"
	"testing/synctest"
)

// TestTooManyConnections has a listener that is at its bound.
func TestTooManyConnections(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		full := &listener{Listener: n.listen("full:7947"), host: a.Host}
		full.open.Store(maxConnections)
		accepted := make(chan error, 1)
		go func() {
			_, err := full.Accept()
			accepted <- err
		}()
		conn, err := n.dial(t.Context(), "full:7947")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("the connection was not closed")
		}
		synctest.Wait()
		if a.Stats().Refused[ReasonConnections] != 1 || a.lines("no room for another connection") != 1 {
			t.Errorf("stats %+v, log %s", a.Stats(), a.log)
		}
		full.open.Store(0)
		second, err := n.dial(t.Context(), "full:7947")
		if err != nil {
			t.Fatal(err)
		}
		defer second.Close()
		if err := <-accepted; err != nil || full.open.Load() != 1 {
			t.Errorf("%d connections, error %v, want 1", full.open.Load(), err)
		}
	})
}
