package crdttest

import "fmt"

// Lattice describes a replicated value to the tests. Functions take pointers
// so that values may be large or hold their memory; only Join may change one,
// and only its first.
type Lattice[T any] struct {
	// Join makes *into the least value that covers both and reports whether
	// that changed it. It must not keep memory of *from.
	Join func(into, from *T) (changed bool)
	// Covers reports whether b is at most a in the order of the lattice. It
	// must not be written in terms of Join, whose order it checks.
	Covers func(a, b *T) bool
	// Equal reports whether a and b are the same value.
	Equal func(a, b *T) bool
	// Clone returns a copy with memory of its own.
	Clone func(*T) T
	// Show describes a value in failures.
	Show func(*T) string

	// Delta returns what since lacks of have. Nil if there are no deltas.
	Delta func(have, since *T) T
	// Digest returns a fingerprint: equal for equal values, and different
	// for the values of a test. Nil if there is none.
	Digest func(*T) uint64
	// Selective says that a join is one of its two arguments, never a
	// mixture. True of a lattice in which any two values compare.
	Selective bool
}

// Violation is a law that three values break.
type Violation struct {
	Law    string // what should hold, x y z being the values
	Values [3]string
	Got    string
}

// Error names the law, the values and what was found instead.
func (v *Violation) Error() string {
	return fmt.Sprintf("law broken: %s\nx: %s\ny: %s\nz: %s\ngot: %s",
		v.Law, v.Values[0], v.Values[1], v.Values[2], v.Got)
}

// Check holds three values to every law, each law in all orders of the values
// that matter to it. The values are not changed. The error is a *Violation of
// the first law that does not hold.
func Check[T any](l Lattice[T], x, y, z T) error {
	c := checker[T]{l: l, values: [3]string{l.Show(&x), l.Show(&y), l.Show(&z)}}
	for _, law := range c.laws() {
		if err := law(&x, &y, &z); err != nil {
			return err
		}
	}
	return nil
}

// checker holds what the laws share.
type checker[T any] struct {
	l      Lattice[T]
	values [3]string
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

// join returns the join and leaves its arguments alone.
func (c *checker[T]) join(x, y *T) *T {
	into := c.l.Clone(x)
	c.l.Join(&into, y)
	return &into
}

func (c *checker[T]) broken(law, format string, args ...any) error {
	return &Violation{Law: law, Values: c.values, Got: fmt.Sprintf(format, args...)}
}

// same returns a violation unless got and want are equal.
func (c *checker[T]) same(law string, got, want *T) error {
	if c.l.Equal(got, want) && c.l.Equal(want, got) {
		return nil
	}
	return c.broken(law, "%s and %s", c.l.Show(got), c.l.Show(want))
}
