package link

import (
	"net"
	"sync"
	"sync/atomic"
)

// listener bounds the connections of a Host. It closes further ones at once, so
// that the backlog does not fill with waiting ones.
type listener struct {
	net.Listener
	host *Host
	open atomic.Int64
}

// Accept returns the next connection.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= maxConnections {
			return &countedConn{Conn: conn, closed: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
		}
		l.open.Add(-1)
		remote := conn.RemoteAddr().String()
		conn.Close()
		l.host.countRefused(&Refused{
			Reason: ReasonConnections,
			Text:   l.host.config.Self().String() + " has no room for another connection",
		}, remote, &proof{})
	}
}

// countedConn is a connection that counts as open until it is closed.
type countedConn struct {
	net.Conn
	closed func()
}

// Close closes the connection.
func (c *countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}
