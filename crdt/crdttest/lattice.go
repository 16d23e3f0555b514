package crdttest

import "fmt"

// Lattice describes a replicated value for the tests. Its functions take
// pointers, so that values may be large or own memory. Only Join may change a
// value, and only its first argument.
type Lattice[T any] struct {
	// Join makes *into the least value that covers both and reports whether
	// that changed it. It must not keep memory of *from.
	Join func(into, from *T) (changed bool)
	// Covers reports whether b is at most a in the order of the lattice. It
	// must not use Join, whose order it checks.
	Covers func(a, b *T) bool
	// Equal reports whether a and b are the same value.
	Equal func(a, b *T) bool
	// Clone returns a copy with its own memory.
	Clone func(*T) T
	// Show describes a value in failures.
	Show func(*T) string

	// Delta returns the part of have that since lacks. Nil if there are no
	// deltas.
	Delta func(have, since *T) T
	// Digest returns a fingerprint: equal for equal values, different for
	// different values of a test. Nil if there is none.
	Digest func(*T) uint64
	// Selective is set if a join is always one of its two arguments, never a
	// mixture. This holds if any two values of the lattice are comparable.
	Selective bool
}

// checker is the common state of the laws, for three values. The laws do not
// change the values.
type checker[T any] struct {
	l      Lattice[T]
	values [3]string // x, y and z, before any join
}

type law[T any] func(x, y, z *T) error

func (c *checker[T]) laws() []law[T] {
	all := []law[T]{c.argument, c.idempotent, c.commutative, c.associative, c.inflationary, c.least, c.reports}
	if c.l.Delta != nil {
		all = append(all, c.delta)
	}
	if c.l.Digest != nil {
		all = append(all, c.digest)
	}
	if c.l.Selective {
		all = append(all, c.selective)
	}
	return all
}

// join returns the join and does not change its arguments.
func (c *checker[T]) join(x, y *T) *T {
	into := c.l.Clone(x)
	c.l.Join(&into, y)
	return &into
}

// broken returns the violation of a law by the values, which it states in terms
// of x, y and z.
func (c *checker[T]) broken(law, format string, args ...any) error {
	return fmt.Errorf("law broken: %s\nx: %s\ny: %s\nz: %s\ngot: %s",
		law, c.values[0], c.values[1], c.values[2], fmt.Sprintf(format, args...))
}

// same returns a violation unless got and want are equal.
func (c *checker[T]) same(law string, got, want *T) error {
	if c.l.Equal(got, want) && c.l.Equal(want, got) {
		return nil
	}
	return c.broken(law, "%s and %s", c.l.Show(got), c.l.Show(want))
}
