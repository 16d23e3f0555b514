package web

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

// Bounds on the bodies of requests: that of one, and the long ones of all
// callers together. Most questions are short.
const (
	// MaxBodyBytes is the longest body; a longer one gets 413.
	MaxBodyBytes = 1 << 20
	// shortBody is the longest body that is read beside any number of others.
	shortBody = 16 << 10
	// longBodies is the number of longer ones at a time: each may need many
	// times its length while it is decoded.
	longBodies = 4
	// longBodyTime bounds how long a long body waits for its turn, and how
	// long it may take to arrive then.
	longBodyTime = 2 * time.Second
)

// bodyReader reads bodies. It has a token for each long body that is in
// memory, and is safe for concurrent use.
type bodyReader chan struct{}

func newBodyReader() bodyReader { return make(bodyReader, longBodies) }

// read returns a body of at most MaxBodyBytes. The caller calls done when it
// has decoded the body, which is not used after that. Errors are *problem.
func (b bodyReader) read(w http.ResponseWriter, r *http.Request) (body []byte, done func(), err error) {
	all := http.MaxBytesReader(w, r.Body, MaxBodyBytes)
	body, err = io.ReadAll(io.LimitReader(all, shortBody))
	if err != nil {
		return nil, nil, bodyFault(err)
	}
	if len(body) < shortBody {
		return body, func() {}, nil
	}
	wait := time.NewTimer(longBodyTime)
	defer wait.Stop()
	select {
	case b <- struct{}{}:
	case <-wait.C:
		return nil, nil, newProblem(http.StatusServiceUnavailable, codeUnavailable,
			"%d other bodies of %d bytes or more are being read; send this one again, or ask in shorter bodies", longBodies, shortBody)
	case <-r.Context().Done():
		return nil, nil, bodyFault(r.Context().Err())
	}
	// A writer without deadlines is not of NewServer.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(longBodyTime))
	buf := bytes.NewBuffer(body)
	if _, err := buf.ReadFrom(all); err != nil {
		<-b
		return nil, nil, bodyFault(err)
	}
	return buf.Bytes(), func() { <-b }, nil
}

func bodyFault(err error) *problem {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return newProblem(http.StatusRequestEntityTooLarge, codeTooLarge,
			"the body is longer than %d bytes", MaxBodyBytes)
	}
	return newProblem(http.StatusBadRequest, codeInvalid, "the body ended early: %v", err)
}
