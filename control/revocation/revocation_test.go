package revocation

import (
	"fmt"
	"strings"
	"testing"
)

// TestAfter adds daemons up to the bound, and takes them off again.
func TestAfter(t *testing.T) {
	var l List
	for i := range Max {
		next, err := l.After(Change{Name: Name{"eu", fmt.Sprint("d-", i)}}, int64(i))
		if err != nil || next.Validate() != nil || len(l) != i {
			t.Fatalf("%d: %v, %v, %d before", i, err, next.Validate(), len(l))
		}
		l = next
	}
	refuses := func(c Change, want string) {
		t.Helper()
		if next, err := l.After(c, 0); err == nil || next != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", c, err, want)
		}
	}
	refuses(Change{Name: Name{"eu", "d-7"}}, "daemon eu/d-7 is revoked already")
	refuses(Change{Name: Name{"eu", "another"}}, "256 daemons are revoked, want at most 256: unrevoke those with expired certificates")
	refuses(Change{Name: Name{"eu", "another"}, Undo: true}, "daemon eu/another is not revoked")
	for i := range Max {
		name := Name{"eu", fmt.Sprint("d-", i)}
		next, err := l.After(Change{Name: name, Undo: true}, 0)
		if err != nil || next.Has(name) || !l.Has(name) {
			t.Fatalf("%s: %v", name, err)
		}
		l = next
	}
	if l != nil {
		t.Errorf("left: %v", l)
	}
}

// TestParse reads names as certificates have them.
func TestParse(t *testing.T) {
	if n, err := Parse("eu-west/rld.0"); err != nil || n.String() != "eu-west/rld.0" {
		t.Errorf("%v, %v", n, err)
	}
	for _, text := range []string{"", "/", "eu", "eu/", "/a", "eu/a/b", "eu/-a", ".eu/a", "eu/a b", "eu/ä", "eu/\xff", "eu/" + strings.Repeat("a", 64)} {
		if n, err := Parse(text); err == nil || !strings.Contains(err.Error(), "want REGION/NAME") {
			t.Errorf("%q: %v, %v", text, n, err)
		}
	}
}

// TestValidate refuses lists that no changes make.
func TestValidate(t *testing.T) {
	a, b := Entry{Name: Name{"eu", "a"}}, Entry{Name: Name{"eu", "b"}}
	for _, l := range []List{{b, a}, {a, a}, {Entry{}}, make(List, Max+1)} {
		if l.Validate() == nil {
			t.Errorf("%v is valid", l)
		}
	}
}
