package crdttest

import "pgregory.net/rapid"

// Laws checks the laws of a lattice on values drawn from gen. It fails t with
// the law and the smallest values that break it. gen should draw from few
// writers and small numbers: laws break where values collide.
func Laws[T any](t rapid.TB, l Lattice[T], gen *rapid.Generator[T]) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		x, y, z := gen.Draw(t, "x"), gen.Draw(t, "y"), gen.Draw(t, "z")
		c := checker[T]{l: l, values: [3]string{l.Show(&x), l.Show(&y), l.Show(&z)}}
		for _, law := range c.laws() {
			if err := law(&x, &y, &z); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// argument: a join does not change its second argument, neither then nor when
// the result or the argument is joined further.
func (c *checker[T]) argument(x, y, z *T) error {
	const law = "a join neither changes nor keeps its argument"
	into, from := c.l.Clone(x), c.l.Clone(y)
	c.l.Join(&into, &from)
	result := c.l.Clone(&into)
	c.l.Join(&into, z)
	if err := c.same(law, &from, y); err != nil {
		return err
	}
	into = c.l.Clone(x)
	c.l.Join(&into, &from)
	c.l.Join(&from, z)
	return c.same(law, &into, &result)
}

func (c *checker[T]) idempotent(x, _, _ *T) error {
	return c.same("x join x = x", c.join(x, x), x)
}

func (c *checker[T]) commutative(x, y, _ *T) error {
	return c.same("x join y = y join x", c.join(x, y), c.join(y, x))
}

func (c *checker[T]) associative(x, y, z *T) error {
	return c.same("(x join y) join z = x join (y join z)", c.join(c.join(x, y), z), c.join(x, c.join(y, z)))
}

func (c *checker[T]) inflationary(x, y, _ *T) error {
	both := c.join(x, y)
	if !c.l.Covers(both, x) {
		return c.broken("x <= x join y", "%s, which does not cover x", c.l.Show(both))
	}
	if !c.l.Covers(both, y) {
		return c.broken("y <= x join y", "%s, which does not cover y", c.l.Show(both))
	}
	return nil
}

// least: the join is no greater than needed, and its order is that of Covers.
func (c *checker[T]) least(x, y, z *T) error {
	both := c.join(x, y)
	if c.l.Covers(z, x) && c.l.Covers(z, y) && !c.l.Covers(z, both) {
		return c.broken("the join is least: what covers x and y covers x join y",
			"%s, which z does not cover", c.l.Show(both))
	}
	if covers, equal := c.l.Covers(x, y), c.l.Equal(both, x); covers != equal {
		return c.broken("the join is least: x join y = x if and only if y <= x",
			"equal %t, y <= x %t", equal, covers)
	}
	return nil
}

func (c *checker[T]) reports(x, y, _ *T) error {
	into := c.l.Clone(x)
	changed := c.l.Join(&into, y)
	if moved := !c.l.Equal(&into, x); changed != moved {
		return c.broken("a join reports whether it changed x", "reported %t, changed %t", changed, moved)
	}
	return nil
}

func (c *checker[T]) delta(x, y, z *T) error {
	since := c.l.Clone(x)
	d := c.l.Delta(y, &since)
	if err := c.same("a delta is taken without changing x", &since, x); err != nil {
		return err
	}
	if err := c.same("x join delta(y, x) = x join y", c.join(x, &d), c.join(x, y)); err != nil {
		return err
	}
	if !c.l.Covers(y, &d) {
		return c.broken("delta(y, x) <= y", "%s", c.l.Show(&d))
	}
	if c.l.Covers(x, y) && !c.l.Covers(z, &d) {
		return c.broken("y <= x, so delta(y, x) is nothing", "%s", c.l.Show(&d))
	}
	before := c.l.Clone(y)
	c.l.Join(&d, z)
	return c.same("a delta keeps no memory of its value", y, &before)
}

func (c *checker[T]) digest(x, y, _ *T) error {
	both := c.join(x, y)
	for _, p := range [][2]*T{{x, y}, {x, both}, {both, c.join(y, x)}} {
		equal := c.l.Equal(p[0], p[1])
		if same := c.l.Digest(p[0]) == c.l.Digest(p[1]); same != equal {
			return c.broken("digests are equal if and only if values are",
				"digests equal %t, values equal %t: %s and %s", same, equal, c.l.Show(p[0]), c.l.Show(p[1]))
		}
	}
	return nil
}

func (c *checker[T]) selective(x, y, _ *T) error {
	both := c.join(x, y)
	if !c.l.Equal(both, x) && !c.l.Equal(both, y) {
		return c.broken("x join y is x or y, not a mixture", "%s", c.l.Show(both))
	}
	return nil
}
