package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
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
	ctx       context.Context // when it ends, both ends close
	end       context.CancelFunc
	cause     atomic.Pointer[error] // why a partition broke it
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
	l := &line{wan: w, path: p, near: near, far: far}
	l.ctx, l.end = context.WithCancel(w.ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		l.end()
		return nil, errors.Join(net.ErrClosed, far.Close())
	}
	// Under the lock, so that Close waits for it.
	w.wait.Go(l.run)
	return &end{Conn: out, line: l}, nil
}

// run carries both directions until both ends are closed.
func (l *line) run() {
	l.wan.wait.Go(func() {
		<-l.ctx.Done()
		l.near.Close()
		l.far.Close()
	})
	var directions sync.WaitGroup
	for _, way := range [][2]net.Conn{{l.near, l.far}, {l.far, l.near}} {
		queue := make(chan chunk, directionChunks)
		directions.Go(func() { l.take(way[0], queue) })
		directions.Go(func() { l.deliver(way[1], queue) })
	}
	directions.Wait()
	l.end()
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
		c := chunk{due: due, last: err != nil, data: bytes.Clone(buf[:n])}
		select {
		case queue <- c:
		case <-l.ctx.Done():
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
	for taken := true; ; {
		var c chunk
		select {
		case c = <-queue:
		case <-l.ctx.Done():
			return
		}
		if !pause(l.ctx, time.Until(c.due)) || l.hold() != nil {
			l.end()
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
	began := time.Now()
	err := l.wan.awaitHeal(l.ctx, l.path, holdLimit)
	if errors.Is(err, ErrCut) { // The other side is not notified.
		l.cause.CompareAndSwap(nil, &err)
		l.near.Close()
		err = l.wan.awaitHeal(l.ctx, l.path, never)
	}
	if held := time.Since(began); err == nil && held > holdGrace {
		err = fmt.Errorf("reset after %s: %w", held.Round(time.Millisecond), ErrCut)
		l.cause.CompareAndSwap(nil, &err)
	}
	return err
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
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
		if cause := e.line.cause.Load(); cause != nil {
			return *cause
		}
	}
	return err
}
