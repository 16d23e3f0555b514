package demo

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// The bounds of one direction of a connection: at most directionChunks chunks
// of chunkBytes each are in transit. A writer beyond it waits, as it does for a
// full send buffer.
const (
	chunkBytes      = 16 << 10
	directionChunks = 256
)

// line is a connection between two regions: near is the end of the dialing
// side, far the real connection. Only data that arrives closes the ends, so
// that neither side learns of a close across a partition.
type line struct {
	wan       *WAN
	path      *path
	near, far net.Conn
	done      chan struct{} // closed when both ends are

	mu     sync.Mutex
	cause  error // why it broke, nil as long as it did not
	failed bool
}

// chunk is a read of one end, and the time at which it is due at the other.
type chunk struct {
	data []byte
	due  time.Time
	last bool // the end was closed
}

// join puts the distance of a path in front of a connection.
func (w *WAN) join(p *path, far net.Conn) (net.Conn, error) {
	out, near := net.Pipe()
	l := &line{wan: w, path: p, near: near, far: far, done: make(chan struct{})}
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		return nil, errors.Join(net.ErrClosed, far.Close())
	}
	w.lines[l] = struct{}{}
	// Under the lock, so that Close waits for it.
	w.wait.Go(l.run)
	w.mu.Unlock()
	return &end{Conn: out, line: l}, nil
}

// run carries both directions until both ends are closed.
func (l *line) run() {
	var directions sync.WaitGroup
	for _, way := range [][2]net.Conn{{l.near, l.far}, {l.far, l.near}} {
		queue := make(chan chunk, directionChunks)
		directions.Go(func() { l.take(way[0], queue) })
		directions.Go(func() { l.deliver(way[1], queue) })
	}
	directions.Wait()
	l.fail(net.ErrClosed)
	l.wan.mu.Lock()
	delete(l.wan.lines, l)
	l.wan.mu.Unlock()
}

// take reads one end until it is closed.
func (l *line) take(from net.Conn, queue chan<- chunk) {
	buf := make([]byte, chunkBytes)
	var due time.Time
	for {
		n, err := from.Read(buf)
		// In order, however the delays are drawn.
		if at := time.Now().Add(l.wan.delay(l.path)); at.After(due) {
			due = at
		}
		c := chunk{due: due, last: err != nil, data: append([]byte(nil), buf[:n]...)}
		select {
		case queue <- c:
		case <-l.done:
			return
		}
		if c.last {
			return
		}
	}
}

// deliver writes due chunks to the other end, and closes it after the last one.
// An end that fails receives nothing more; its close travels in the other
// direction with its own delay.
func (l *line) deliver(to net.Conn, queue <-chan chunk) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for taken := true; ; {
		var c chunk
		select {
		case c = <-queue:
		case <-l.done:
			return
		}
		timer.Reset(time.Until(c.due))
		select {
		case <-timer.C:
		case <-l.done:
			return
		}
		if err := l.hold(); err != nil {
			l.fail(err)
			return
		}
		if taken && len(c.data) > 0 {
			_, err := to.Write(c.data)
			taken = err == nil
		}
		if c.last {
			to.Close() // an error of Close has no consequence
			return
		}
	}
}

// hold waits as long as the path is cut. It returns an error when the
// connection is not to go on.
func (l *line) hold() error {
	cut, turned := l.wan.state(l.path)
	if !cut {
		return nil
	}
	began := time.Now()
	given := time.NewTimer(holdLimit)
	defer given.Stop()
	for cut {
		select {
		case <-turned:
			cut, turned = l.wan.state(l.path)
		case <-given.C:
			// The other side is not notified.
			l.give(fmt.Errorf("no acknowledgement within %s: %w", holdLimit, ErrCut))
		case <-l.done:
			return net.ErrClosed
		}
	}
	if held := time.Since(began); held > holdGrace {
		return fmt.Errorf("reset after %s: %w", held.Round(time.Millisecond), ErrCut)
	}
	return nil
}

// give closes the near end alone.
func (l *line) give(err error) {
	l.mu.Lock()
	if l.cause == nil {
		l.cause = err
	}
	l.mu.Unlock()
	l.near.Close()
}

// fail closes both ends.
func (l *line) fail(err error) {
	l.mu.Lock()
	first := !l.failed
	l.failed = true
	if l.cause == nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
		l.cause = err
	}
	l.mu.Unlock()
	if first {
		close(l.done)
		l.near.Close()
		l.far.Close()
	}
}

// end is the connection of the dialing side. It has the addresses of the real
// connection, and returns a reason instead of io.EOF where a partition broke
// it.
type end struct {
	net.Conn
	line *line
}

// LocalAddr is that of the connection of the machine.
func (e *end) LocalAddr() net.Addr { return e.line.far.LocalAddr() }

// RemoteAddr is likewise.
func (e *end) RemoteAddr() net.Addr { return e.line.far.RemoteAddr() }

// Read reads what arrived.
func (e *end) Read(b []byte) (int, error) {
	n, err := e.Conn.Read(b)
	return n, e.why(err)
}

// Write hands bytes to the network.
func (e *end) Write(b []byte) (int, error) {
	n, err := e.Conn.Write(b)
	return n, e.why(err)
}

func (e *end) why(err error) error {
	if err == nil || !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	e.line.mu.Lock()
	defer e.line.mu.Unlock()
	if e.line.cause != nil {
		return e.line.cause
	}
	return err
}
