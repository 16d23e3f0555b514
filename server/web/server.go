package web

import (
	"net/http"
	"time"
)

// Bounds on one request. A question in a URL has room for some hundred
// descriptors; larger ones go into a body.
const (
	// MaxQueryBytes is the longest query; a longer one gets 414.
	MaxQueryBytes = 64 << 10
	// MaxHeaderBytes is the request line and the headers together.
	MaxHeaderBytes = MaxQueryBytes + 16<<10
)

// Time limits on a connection. They are far above what an answer takes and
// keep a slow or silent peer from holding a connection for nothing.
const (
	ReadHeaderTimeout = 5 * time.Second
	ReadTimeout       = 15 * time.Second // headers and body
	WriteTimeout      = 15 * time.Second
	// IdleTimeout is longer than the 60 s for which gateways commonly keep
	// idle connections, so that they close them and not we.
	IdleTimeout = 2 * time.Minute
)

// NewServer returns a server for h with the limits above. The caller sets
// ErrorLog, serves and shuts down.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: ReadHeaderTimeout,
		ReadTimeout:       ReadTimeout,
		WriteTimeout:      WriteTimeout,
		IdleTimeout:       IdleTimeout,
		MaxHeaderBytes:    MaxHeaderBytes,
	}
}
