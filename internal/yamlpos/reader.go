package yamlpos

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/georld/rld/internal/suggest"
)

// Reader reads the value n of the named field into the variable that it was
// made for, and reports whether it could. Otherwise it adds a fault, and the
// variable keeps its value.
type Reader func(n *Node, name string) bool

// Text reads a text. Whole numbers and booleans are text in the spelling of
// the file: 8080 is "8080" and yes is "yes". A null is "".
func (c *Collector) Text(out *string) Reader {
	return func(n *Node, name string) bool {
		if n.Kind != Scalar {
			return c.Errorf(n.Pos, "write "+name+": some text", "%s is %s", name, n.Kind)
		}
		v, ok := n.Resolve()
		if !ok {
			return c.Errorf(n.Pos, "drop the tag", "%s is tagged %s, which %s is not", name, n.Tag, Quote(n.Text))
		}
		quoted := "put it in quotes: \"" + clip(n.Text) + "\""
		text := n.Text
		switch v := v.(type) {
		case nil:
			text = ""
		case string:
			text = v
		case float64:
			return c.Errorf(n.Pos, quoted, "%s is the number %s, and a number with a fraction has more than one spelling",
				name, clip(n.Text))
		case uint64:
			return c.Errorf(n.Pos, quoted, "%s is a number of more than 63 bits", name)
		}
		if !utf8.ValidString(text) {
			return c.Errorf(n.Pos, "", "%s is not UTF-8", name)
		}
		*out = text
		return true
	}
}

// Bool reads true or false.
func (c *Collector) Bool(out *bool) Reader {
	return func(n *Node, name string) bool {
		v, ok := n.scalar()
		if b, is := v.(bool); ok && is {
			*out = b
			return true
		}
		return c.wrongType(n, name, "!!bool", "write true or false")
	}
}

// Integer is any type that Whole reads.
type Integer interface {
	~int | ~int64 | ~uint8 | ~uint32 | ~uint64
}

// Whole returns a Reader of a whole number from low to high, of which low is
// not negative.
func Whole[T Integer](c *Collector, out *T, low, high T) Reader {
	return func(n *Node, name string) bool {
		v, ok := n.scalar()
		u, whole := v.(uint64)
		if i, is := v.(int64); is && i >= 0 {
			u, whole = uint64(i), true
		}
		if !ok || !whole || u < uint64(low) || u > uint64(high) {
			return c.wrongType(n, name, "!!int", fmt.Sprintf("write a whole number from %d to %d", low, high))
		}
		*out = T(u)
		return true
	}
}

// Number reads a number from low to high.
func (c *Collector) Number(out *float64, low, high float64) Reader {
	return func(n *Node, name string) bool {
		f, err := strconv.ParseFloat(n.Text, 64)
		if n.Kind != Scalar || err != nil || !(f >= low && f <= high) {
			return c.Errorf(n.Pos, "write a number from "+shortest(low)+" to "+shortest(high), "%s is %s", name, n.Describe())
		}
		*out = f
		return true
	}
}

func shortest(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Duration reads a time with its unit, such as 500ms or 1m30s, from low to
// high.
func (c *Collector) Duration(out *time.Duration, low, high time.Duration) Reader {
	return func(n *Node, name string) bool {
		d, err := time.ParseDuration(n.Text)
		switch {
		case n.Kind != Scalar || err != nil:
			return c.Errorf(n.Pos, "write a time with its unit: 500ms, 10s, 1m30s", "%s is %s", name, n.Describe())
		case d < low || d > high:
			return c.Errorf(n.Pos, fmt.Sprintf("it is %v to %v", low, high), "%s is %v", name, d)
		}
		*out = d
		return true
	}
}

// Percent returns a Reader of a percentage such as 2% or 0.5%, in parts per
// million. It has at most four decimals. The example is part of the hint.
func Percent[T ~uint32](c *Collector, out *T, example string) Reader {
	return func(n *Node, name string) bool {
		text, found := strings.CutSuffix(n.Text, "%")
		if ppm, ok := parsePPM(text); n.Kind == Scalar && found && ok {
			*out = T(ppm)
			return true
		}
		got := n.Describe()
		if n.Kind == Scalar {
			got = Quote(n.Text)
		}
		return c.Errorf(n.Pos, "write a percentage with at most four decimals, such as "+example, "%s is %s", name, got)
	}
}

// parsePPM returns a decimal number of percent as parts per million, and false
// when it is no such number, has more than four decimals or overflows.
func parsePPM(percent string) (uint32, bool) {
	whole, fraction, point := strings.Cut(percent, ".")
	if whole == "" || point && fraction == "" || len(fraction) > 4 || strings.Trim(whole+fraction, "0123456789") != "" {
		return 0, false
	}
	ppm, err := strconv.ParseUint(whole+fraction+"0000"[len(fraction):], 10, 32)
	return uint32(ppm), err == nil
}

// Word returns a Reader of one of a few words as its index.
func Word[T ~int | ~uint8](c *Collector, out *T, words []string) Reader {
	return func(n *Node, name string) bool {
		var text string
		if !c.Text(&text)(n, name) {
			return false
		}
		i := slices.Index(words, text)
		if i < 0 {
			return c.Errorf(n.Pos, suggest.Hint(text, words, "it is one of "+suggest.List(words)), "unknown %s %s", name, Quote(text))
		}
		*out = T(i)
		return true
	}
}

// scalar returns the value of a scalar, and false for other nodes and for one
// whose tag contradicts its text.
func (n *Node) scalar() (any, bool) {
	if n.Kind != Scalar {
		return nil, false
	}
	return n.Resolve()
}

// wrongType adds the fault of a value that is not of the type with this tag, or
// is out of range. It returns false.
func (c *Collector) wrongType(n *Node, name, tag, hint string) bool {
	if n.Kind == Scalar && n.Quoted && tagOf(untagged(n.Text)) == tag {
		hint = "leave out the quotes"
	}
	return c.Errorf(n.Pos, hint, "%s is %s", name, n.Describe())
}
