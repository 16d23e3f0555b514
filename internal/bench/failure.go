package main

import (
	"errors"
	"slices"
)

// failure is the error with which check ends the measurement of a line.
type failure struct{ error }

// check ends the measurement under way unless err is nil, as t.Fatal ends a
// test: it panics, and catch turns the panic into an error again. Goroutines
// other than the one that measures return their errors instead.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns v, and ends the measurement under way if there is an error.
func must[T any](v T, err error) T {
	check(err)
	return v
}

// catch calls f and returns the error with which check ended it, or nil.
func catch(f func()) (err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case failure:
			err = e.error
		default:
			panic(e)
		}
	}()
	f()
	return nil
}

// cleanup holds the functions that stop and remove the parts of a setup.
type cleanup struct{ steps []func() error }

func (c *cleanup) add(step func() error) { c.steps = append(c.steps, step) }

// stop calls the functions, the last one first, and forgets them. It returns
// all their errors.
func (c *cleanup) stop() error {
	var errs []error
	for _, step := range slices.Backward(c.steps) {
		errs = append(errs, step())
	}
	c.steps = nil
	return errors.Join(errs...)
}

// finish is to be deferred: it calls stop and ends the measurement with its
// error, together with the error of a measurement that has already failed.
func finish(stop func() error) {
	failed := recover()
	err := stop()
	switch e := failed.(type) {
	case nil:
		check(err)
	case failure:
		check(errors.Join(e.error, err))
	default:
		panic(e)
	}
}
