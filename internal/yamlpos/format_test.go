package yamlpos

import (
	"testing"

	"pgregory.net/rapid"
)

// drawNode draws a tree.
func drawNode(t *rapid.T, depth int) *Node {
	text := rapid.OneOf(
		rapid.SampledFrom([]string{"", "~", "yes", "1", "0x10", "- a", "a: b", "#", "%", "<<", "a\nb", "é", "*", "50%", "1m30s"}),
		rapid.StringMatching(`[ -~]{0,60}`),
	)
	kind := Scalar
	if depth > 0 {
		kind = rapid.SampledFrom([]Kind{Scalar, Map, List}).Draw(t, "kind")
	}
	n := &Node{Kind: kind}
	size := rapid.IntRange(0, 4)
	switch kind {
	case Scalar:
		n.Text, n.Quoted = text.Draw(t, "text"), true
	case Map:
		for range size.Draw(t, "pairs") {
			n.Pairs = append(n.Pairs, Pair{drawNode(t, 0), drawNode(t, depth-1)})
		}
	case List:
		for range size.Draw(t, "items") {
			n.Items = append(n.Items, drawNode(t, depth-1))
		}
	}
	return n
}

// sameNode reports whether two trees have the same values.
func sameNode(a, b *Node) bool {
	if a.Kind != b.Kind || len(a.Pairs) != len(b.Pairs) || len(a.Items) != len(b.Items) {
		return false
	}
	for i := range a.Pairs {
		if !sameNode(a.Pairs[i].Key, b.Pairs[i].Key) || !sameNode(a.Pairs[i].Value, b.Pairs[i].Value) {
			return false
		}
	}
	for i := range a.Items {
		if !sameNode(a.Items[i], b.Items[i]) {
			return false
		}
	}
	x, okA := a.Resolve()
	y, okB := b.Resolve()
	return a.Kind != Scalar || x == y && okA == okB
}

// TestFormat reads trees that were written, and writes them again.
func TestFormat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNode(t, 4)
		file := Format(n)
		got, _, fault := Parse("f", file, Options{MaxBytes: 1 << 20})
		if fault != nil {
			t.Fatalf("%v\n%s", fault, file)
		}
		if !sameNode(n, got) {
			t.Fatalf("it has other values:\n%s", file)
		}
		if again := Format(got); string(again) != string(file) {
			t.Fatalf("written again:\n%s\nwas\n%s", again, file)
		}
	})
}

// TestFormatKeepsTypes writes values that are no texts.
func TestFormatKeepsTypes(t *testing.T) {
	const file = "a: 1\nb: [true, ~, 1.5, 50%, !!str 7]\n\"c\": \"1\"\n<<: {d: x}\n"
	n, _, fault := Parse("f", []byte(file), Options{MaxBytes: 1 << 20})
	if fault != nil {
		t.Fatal(fault)
	}
	if got := string(Format(n)); got != file {
		t.Errorf("got\n%swant\n%s", got, file)
	}
}
