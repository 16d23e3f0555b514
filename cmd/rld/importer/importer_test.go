package importer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/config/upstream"
	"github.com/georld/rld/limits"
)

// TestSuggestionsLoad: a daemon of a cluster accepts each suggested field, and
// it bounds the limit.
func TestSuggestionsLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{
			Regions:   rapid.IntRange(1, 5).Draw(t, "regions"),
			Staleness: time.Duration(rapid.IntRange(0, 5_000).Draw(t, "staleness")) * time.Millisecond,
		}
		names := []string{"a", "b", "c", "d", "e"}[:o.Regions]
		file := func(field string) []limits.File {
			return []limits.File{{Name: "limits.yaml", Data: fmt.Appendf(nil, "domain: edge\ndescriptors:\n  - key: user\n    rate_limit:\n      unit: %s\n      requests_per_unit: %d\n      %s\n",
				rapid.SampledFrom([]string{"second", "minute", "hour", "day", "year"}).Draw(t, "unit"), rapid.Uint32().Draw(t, "requests"), field)}}
		}
		plain := file("")
		set, found := limits.Parse(plain, limits.Options{})
		if set == nil {
			t.Fatal(found)
		}
		got := newLimit(set.Rules()[0], &o)
		if got.Text == "" {
			t.Error("no explanation")
		}
		if got.Suggest == "" {
			return
		}
		with := limits.File{Name: "limits.yaml", Data: append(plain[0].Data, "      "+got.Suggest+"\n"...)}
		set, found = limits.Parse([]limits.File{with}, limits.Options{Regions: names, Replicated: true})
		if set == nil {
			t.Fatalf("%s: %v", got.Suggest, found)
		}
		if l := set.Rules()[0].Limit; !l.HasRights() && !l.Homed() {
			t.Errorf("%s does not bound the limit", got.Suggest)
		}
	})
}

// TestEnvironments reads the forms of environments.
func TestEnvironments(t *testing.T) {
	const want = "A=1 B=x y C= D=~the variable E"
	for name, text := range map[string]string{
		"lines":      "# of a pod\nexport A=1\n\nB=\"x y\"\nC=''\nD=${E}\n",
		"last wins":  "A=0\nA=1\nB=x y # a comment\nC=\nD=${E}",
		"map":        "A: 1\nB: x y\nC: ''\nD: ${E}\n",
		"list":       "- A=1\n- B=x y\n- C=\n- D=${E}\n",
		"default":    "A=${X:-1}\nB=${X-x y}\nC=\nD=${E:-}\n",
		"container":  "- {name: A, value: '1'}\n- {name: B, value: x y}\n- {name: C}\n- {name: D, value: '${E}'}\n",
		"compose":    "services: {redis: {environment: {X: 1}}, ratelimit: {environment: [A=1, B=x y, C=, 'D=${E}']}}",
		"deployment": "spec: {template: {spec: {containers: [{name: a, env: [{name: X, value: y}]}, {image: envoyproxy/ratelimit, env: [{name: A, value: '1'}, {name: B, value: x y}, {name: C}, {name: D, value: '${E}'}]}]}}}",
	} {
		vars, _, err := readEnvironment("env", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, v := range vars {
			value := v.value
			if v.elsewhere != "" {
				value += "~" + v.elsewhere
			}
			got = append(got, v.name+"="+value)
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestInvalidEnvironments: an environment that is not understood is refused
// whole, with its place.
func TestInvalidEnvironments(t *testing.T) {
	for text, want := range map[string]string{
		"A=1\nB='x\n":                      `env:2: the value of B has no closing ' at its end`,
		"A=1\nB=\"x\" y\n":                 `env:2: the value of B has no closing " at its end`,
		"A=1\n\x00":                        "env: no text in UTF-8",
		"A=\xff":                           "env: no text in UTF-8",
		"":                                 "env: no variables",
		"# A=1\n":                          "env: no variables",
		"env: [\n":                         "env:2:1: ",
		"a: 1\n":                           "0 environments of a container",
		"a: {env: [A=1]}\nb: {env: [A=1]}": "0 environments of a container",
		"env: [{name: 'A=B', value: x}]":   `env:1:14: "A=B" is no name of a variable`,
		"env: [{value: x}]":                "env:1:7: a variable without a name",
		"env: {A: [1]}":                    "env:1:10: A is a list",
	} {
		_, _, err := readEnvironment("env", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// FuzzEnvironment: no input panics, and each variable that is read has a name
// and an effect.
func FuzzEnvironment(f *testing.F) {
	f.Add([]byte("A=1\nREDIS_URL=x"))
	f.Add([]byte("services: {ratelimit: {environment: [PORT=x, 'HOST=${E}']}}"))
	f.Add([]byte("env: [{name: CONFIG_TYPE, value: GRPC_XDS_SOTW}, {name: A, valueFrom: {}}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		vars, _, err := readEnvironment("env", data)
		if err != nil {
			return
		}
		var r Report
		r.environment("env", vars)
		for _, v := range r.Environment {
			if v.Name == "" || v.Effect == "" {
				t.Errorf("%+v", v)
			}
		}
		r.Text()
	})
}

// TestEveryVariable: the report explains each variable of the reference, with
// usual values, without a value and with one that is not in the file.
func TestEveryVariable(t *testing.T) {
	for _, form := range []string{"%s=true", "%s=false", "%s=", "%s=${X}"} {
		for _, u := range upstream.Variables() {
			for _, selector := range []string{"A=1", u.Group.Selector(), "CONFIG_TYPE=GRPC_XDS_SOTW"} {
				plain := u.Kind == upstream.Unneeded || u.Kind == upstream.Replaced // whatever selects it
				if selector == "" || strings.HasPrefix(selector, u.Name+"=") || plain && selector != "A=1" {
					continue
				}
				var r Report
				vars, _, err := readEnvironment("env", fmt.Appendf(nil, selector+"\n"+form+"\n", u.Name))
				if err != nil {
					t.Fatal(err)
				}
				r.environment("env", vars)
				v := r.Environment[len(r.Environment)-1]
				if v.Name != u.Name || v.Effect == "" || v.Effect == effectUnknown || v.Text == "" && len(v.Settings) == 0 {
					t.Errorf("%s with %s: %+v", fmt.Sprintf(form, u.Name), selector, v)
				}
			}
		}
	}
}

// TestSecrets: no value of a variable of the store is in the report.
func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("domain: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := ""
	for _, u := range upstream.Variables() {
		if u.Group == upstream.Store || u.Name == "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS" {
			env += u.Name + "=a:hunter2\n"
		}
	}
	env += "CONFIG_TYPE=GRPC_XDS_SOTW\nUNKNOWN=hunter2\nRLD_UNKNOWN=hunter2\n"
	r, err := Run(Options{Path: dir, Env: []byte(env), EnvName: "env", Regions: 2})
	if err != nil {
		t.Fatal(err)
	}
	if out, faults := r.Text(); strings.Contains(out+faults, "hunter2") || !r.OK {
		t.Errorf("%s\n%s", out, faults)
	}
}
