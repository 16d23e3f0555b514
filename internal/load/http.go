package load

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// HTTP makes calls over HTTP/1.1, each Call on a connection of its own that
// stays open. A status of 2xx is an admitted call. It is immutable.
type HTTP struct {
	// Dial opens a connection.
	Dial func(ctx context.Context) (net.Conn, error)
	// Method is that of the requests, GET for none. The answer to HEAD has no
	// body, whatever its headers state.
	Method string
	// Denied are the statuses of a denied call; all others are errors.
	Denied []int
}

// NoHTTP is the code of an answer that is no HTTP/1.1.
const NoHTTP = "no HTTP"

// maxBody bounds the bytes of an answer that are read.
const maxBody = 1 << 20

// httpConn is the connection of a Call.
type httpConn struct {
	*HTTP
	conn net.Conn // nil: to be opened
	in   *bufio.Reader
}

// Call returns a Call, and what closes its connection. next returns the bytes
// of the next request, which has no body.
func (h *HTTP) Call(next func() []byte) (call Call, closing func()) {
	c := &httpConn{HTTP: h}
	return func(ctx context.Context) (bool, error) { return c.call(ctx, next()) }, c.close
}

func (c *httpConn) call(ctx context.Context, request []byte) (bool, error) {
	reused := c.conn != nil
	allowed, begun, err := c.try(ctx, request)
	if err != nil && reused && !begun && ctx.Err() == nil {
		// The server closed the connection, as it may between two calls.
		allowed, _, err = c.try(ctx, request)
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return allowed, err
}

// try makes a call. begun is set once an answer began.
func (c *httpConn) try(ctx context.Context, request []byte) (allowed, begun bool, err error) {
	if c.conn == nil {
		if c.conn, err = c.Dial(ctx); err != nil {
			c.conn = nil
			return false, false, failure{"connect", err}
		}
		c.in = bufio.NewReader(c.conn)
	}
	conn := c.conn
	_ = conn.SetDeadline(time.Time{}) // a connection that is closed fails below
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	_, err = conn.Write(request)
	if err == nil {
		_, err = c.in.Peek(1)
	}
	if err != nil {
		c.close()
		return false, false, failure{"connection", err}
	}
	answer, err := http.ReadResponse(c.in, &http.Request{Method: c.Method})
	if err != nil {
		c.close()
		return false, true, failure{NoHTTP, err}
	}
	n, err := io.Copy(io.Discard, io.LimitReader(answer.Body, maxBody))
	if answer.Close || err != nil || n == maxBody {
		c.close()
	}
	if err != nil {
		return false, true, failure{"connection", err}
	}
	allowed, err = c.verdict(answer.StatusCode)
	return allowed, true, err
}

// verdict reads a status.
func (h *HTTP) verdict(status int) (bool, error) {
	if status >= 200 && status < 300 {
		return true, nil
	}
	for _, s := range h.Denied {
		if s == status {
			return false, nil
		}
	}
	return false, failure{fmt.Sprintf("HTTP %d", status), fmt.Errorf("%s", http.StatusText(status))}
}

func (c *httpConn) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// failure is an error with a code.
type failure struct {
	code string
	err  error
}

func (f failure) Error() string { return f.err.Error() }
func (f failure) Unwrap() error { return f.err }

// Code is that of the counts.
func (f failure) Code() string { return f.code }
