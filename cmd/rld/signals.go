package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// onSignal calls handle with each of the signals, one call at a time, until
// done is called, which waits for the last call to return.
func onSignal(handle func(os.Signal), signals ...os.Signal) (done func()) {
	came := make(chan os.Signal, 2) // a stop and the second one
	signal.Notify(came, signals...)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for s := range came {
			handle(s)
		}
	}()
	return func() {
		signal.Stop(came)
		close(came)
		<-ended
	}
}

// stopSignals returns a context that the first SIGTERM or SIGINT ends. The
// second one calls exit with the code that a shell gives to a process which
// died of it.
func stopSignals(parent context.Context, exit func(code int)) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(parent)
	first := true
	ended := onSignal(func(s os.Signal) {
		if !first {
			n, _ := s.(syscall.Signal) // as all signals of this system are
			exit(128 + int(n))
		}
		first = false
		cancel()
	}, syscall.SIGTERM, syscall.SIGINT)
	return ctx, func() {
		ended()
		cancel()
	}
}
