package auth_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/server/auth"
)

const hash = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae" // of foo

func TestParse(t *testing.T) {
	got, err := auth.Parse("tokens.yaml", []byte(`
tokens:
  - {name: shop, sha256: `+hash+`, domains: [shop, cart], verb: check, rate: 0.5}
  - name: eyes
    sha256: `+strings.ToUpper(strings.Replace(hash, "2c", "2d", 1))+`
    domains: ["*"]
    verb: read
`))
	if err != nil {
		t.Fatal(err)
	}
	other := auth.Hash("foo")
	other[0] = 0x2d
	want := auth.Tokens{
		{Name: "shop", SHA256: auth.Hash("foo"), Domains: []string{"shop", "cart"}, Rate: 0.5},
		{Name: "eyes", SHA256: other, Domains: []string{"*"}, Verb: auth.Read},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestParseRefuses refuses a file whole, with the place and the right form, and
// repeats none of its text: a token or another secret may be in it.
func TestParseRefuses(t *testing.T) {
	const secret = "hunter2"
	one := func(fields string) string { return "tokens:\n  - {" + fields + "}\n" }
	for _, tt := range []struct{ name, file, want string }{
		{"another file", secret + "\n", "f:1:1: is no tokens file"},
		{"no YAML", "a: [" + secret, "f:"},
		{"an alias", "*" + secret, "f:"},
		{"a directive", "%" + secret + "\n---\n", "f:"},
		{"a tag", "!!" + secret + " x", "f:"},
		{"not UTF-8", secret + "\xff", "f:"},
		{"nothing", "", "f:1:1: is no tokens file"},
		{"other map", secret + ": 1\n", "f:1:1: is no field of a tokens file"},
		{"no tokens", "tokens: []\n", "f:1:9: tokens is not a list of 1 to 1000"},
		{"a text", "tokens: " + secret + "\n", "f:1:9: tokens is not a list"},
		{"no map", "tokens: [" + secret + "]\n", "f:1:10: is not the map of a token"},
		{"no name", one("sha256: " + hash + ", domains: [a]"), "f:2:5: the token has no name"},
		{"no hash", one("name: a, domains: [a]"), "the token has no sha256"},
		{"no domains", one("name: a, sha256: " + hash), "the token has no domains"},
		{"the token itself", one("name: a, sha256: " + secret + ", domains: [a]"), "f:2:23: sha256 is not a hash of 64"},
		{"a name", one("name: '" + secret + " x', sha256: " + hash + ", domains: [a]"), "f:2:12: name is not"},
		{"a long name", one("name: " + strings.Repeat("a", 64) + ", sha256: " + hash + ", domains: [a]"), "f:2:12: name is not"},
		{"a wildcard", one("name: a, sha256: " + hash + ", domains: [hunter2*]"), "a domain is 1 to 256"},
		{"a long domain", one("name: a, sha256: " + hash + ", domains: [" + strings.Repeat("a", 257) + "]"), "a domain is 1 to 256"},
		{"many domains", one("name: a, sha256: " + hash + ", domains: [" + strings.Repeat("a, ", 1_001) + "]"), "domains is not a list of 1 to 1000"},
		{"many tokens", "tokens: [" + strings.Repeat("hunter2, ", auth.MaxTokens+1) + "]\n", "f:1:9: tokens is not a list of 1 to 1000"},
		{"a domain alone", one("name: a, sha256: " + hash + ", domains: hunter2"), "domains is not a list"},
		{"a verb", one("name: a, sha256: " + hash + ", domains: [a], verb: hunter2"), "verb is neither check nor read"},
		{"a rate", one("name: a, sha256: " + hash + ", domains: [a], rate: hunter2"), "rate is not a number"},
		{"rate 0", one("name: a, sha256: " + hash + ", domains: [a], rate: 0"), "rate is not a number"},
		{"rate NaN", one("name: a, sha256: " + hash + ", domains: [a], rate: nan"), "rate is not a number"},
		{"a field", one("name: a, sha256: " + hash + ", domains: [a], hunter2: 1"), "is no field of a token"},
		{"twice", one("name: a, sha256: " + hash + ", domains: [a], name: hunter2"), "name is given twice"},
		{
			"a name twice", one("name: a, sha256: "+hash+", domains: [a]") + "  - {name: a, sha256: 2d" + hash[2:] + ", domains: [a]}\n",
			"f:3:12: name is that of the token in line 2",
		},
		{
			"a hash twice", one("name: a, sha256: "+hash+", domains: [a]") + "  - {name: b, sha256: " + hash + ", domains: [a]}\n",
			"f:3:23: sha256 is that of the token in line 2",
		},
		{
			"long", one("name: a, sha256: "+hash+", domains: [a]") + strings.Repeat("#", auth.MaxBytes),
			"f:1:1: is not YAML of at most 1 MiB",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tokens, err := auth.Parse("f", []byte(tt.file))
			switch {
			case err == nil || tokens != nil:
				t.Fatalf("accepted: %v", tokens)
			case !strings.Contains(err.Error(), tt.want):
				t.Errorf("%v\nwant %q", err, tt.want)
			case strings.Contains(err.Error(), secret):
				t.Errorf("the fault repeats the file: %v", err)
			}
		})
	}
}

func TestParseBoundsFaults(t *testing.T) {
	_, err := auth.Parse("f", []byte("tokens:\n"+strings.Repeat("  - 1\n", 1_000)))
	if n := strings.Count(fmt.Sprint(err), "\n") + 1; err == nil || n != 20 {
		t.Errorf("%d faults, want 20", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("tokens:\n  - {name: a, sha256: " + hash + ", domains: [a], verb: read, rate: 5}\n"))
	f.Add([]byte("tokens: [&a {<<: *a}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tokens, err := auth.Parse("f", data)
		if (err == nil) != (len(tokens) > 0) {
			t.Errorf("%d tokens and the error %v", len(tokens), err)
		}
		for i := range tokens {
			if !auth.ValidName(tokens[i].Name) || len(tokens[i].Domains) == 0 {
				t.Errorf("accepted %+v", tokens[i])
			}
		}
	})
}
