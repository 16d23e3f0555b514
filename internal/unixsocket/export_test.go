package unixsocket

// Open opens a socket whose mode Listen then completes.
var Open = open
