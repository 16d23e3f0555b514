package demo

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// The bounds of a direction of a connection: what is under way is at most
// laneChunks of chunkBytes each. A writer beyond it waits, as it does for a
// full send buffer.
const (
	chunkBytes = 16 << 10
	laneChunks = 256
)

// line is a connection between two regions: near is its end at the one who
// dialed, far the connection of the machine. The ends are only closed by what
// arrives there, so that nobody learns across a cut that the other has gone.
type line struct {
	wan       *WAN
	path      *path
	near, far net.Conn
	done      chan struct{} // closed when both ends are

	mu     sync.Mutex
	cause  error // why it broke, nil as long as it did not
	failed bool
}

// chunk is what was read at one end, and when it is due at the other.
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
	var lanes sync.WaitGroup
	for _, way := range [][2]net.Conn{{l.near, l.far}, {l.far, l.near}} {
		queue := make(chan chunk, laneChunks)
		lanes.Go(func() { l.take(way[0], queue) })
		lanes.Go(func() { l.deliver(way[1], queue) })
	}
	lanes.Wait()
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

// deliver hands what is due to the other end, and closes it after the last.
// An end that takes no more is told nothing more: that it is closed goes the
// other way, in its own time.
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
			to.Close() // what an end says of being closed helps nobody
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
			// The other side hears nothing of it.
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

// end is what the one who dialed holds: the addresses of the real connection,
// and a reason instead of a plain end where a cut broke it.
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
