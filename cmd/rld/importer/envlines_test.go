package importer

import (
	"slices"
	"strings"
	"testing"
)

// key is a value of several lines. Its last but one line looks like an
// assignment.
const key = "-----BEGIN PRIVATE KEY-----\nMIIEhunter2+/BADANBg\nhunter2=\n-----END PRIVATE KEY-----"

// TestValuesOfLines: a value goes on in the lines that are no assignment, and
// no message has their text.
func TestValuesOfLines(t *testing.T) {
	for name, tc := range map[string]struct{ text, want, note string }{
		"key":       {"KEY=" + key + "\nB=2\n", "KEY=" + key + "|B=2", "env:2: no NAME=VALUE, and read as part of the value of KEY"},
		"quotes":    {"KEY=\"\nhunter2=1\n\" # a key\nB=2", "KEY=\nhunter2=1\n|B=2", "env:2: "},
		"base64":    {"KEY=aHVudGVy\nhunter2==\nhunter2+=\nB=2", "KEY=aHVudGVy\nhunter2==\nhunter2+=|B=2", "env:2: "},
		"function":  {"BASH_FUNC_f%%=() {  echo hunter2\n}\nB=2", "BASH_FUNC_f%%=() {  echo hunter2\n}|B=2", "env:2: "},
		"odd names": {"A.b=1\nA-b=2\nB=2", "A.b=1|A-b=2|B=2", ""},
	} {
		vars, notes, err := readEnvironment("env", []byte(tc.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, v := range vars {
			got = append(got, v.name+"="+v.value)
		}
		if got := strings.Join(got, "|"); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		if all := strings.Join(notes, "\n"); !strings.HasPrefix(all, tc.note) || tc.note == "" && all != "" || strings.Contains(all, "hunter2") {
			t.Errorf("%s: the notes %q, want %q", name, all, tc.note)
		}
	}
}

// TestLinesAreSecret: neither the report nor a fault has text of a file that is
// no name of a variable.
func TestLinesAreSecret(t *testing.T) {
	for _, text := range []string{
		"KEY=" + key + "\nRUNTIME_ROOT=/data\n",
		key,
		"environment:\n  A: 1\n  hunter2: [\n",
		"environment:\n  A: 1\n hunter2\n",
		"environment:\n  A: [hunter2]\n",
		"env: {A: \"hunter2}\n",
		"environment:\n- A=1\n- hunter2 hunter2=\n- hunter2+\n",
		"A=1\nB='hunter2\n",
	} {
		vars, notes, err := readEnvironment("env", []byte(text))
		r := Report{Notes: notes}
		r.environment("env", vars)
		out, faults := r.Text()
		if err != nil {
			faults += err.Error()
		}
		if strings.Contains(out+faults, "hunter2") {
			t.Errorf("%s\n%s%s", text, out, faults)
		}
	}
}

// TestReferences: a value is checked only where the file has it.
func TestReferences(t *testing.T) {
	for text, want := range map[string]string{
		"HOST: ${H}":                    "~the variable H",
		"HOST: ${H:-0.0.0.0}":           "0.0.0.0",
		"HOST: ${H:-0.0.0.0}:x":         "~the variable H",
		"HOST: $H":                      "~the variable H",
		"HOST: a$H":                     "~the variable H",
		"HOST: ${H:?none}":              "~the variable H",
		"HOST: ${H:-${G}}":              "~the variable H",
		"HOST: ${}":                     "~another variable",
		"HOST: a$$b":                    "a$b",
		"HOST: $$H":                     "$H",
		"HOST: $$$H":                    "~the variable H",
		"HOST: a$1$":                    "a$1$",
		"NEAR_LIMIT_RATIO: 0.8":         "0.8",
		"HOST: true":                    "true",
		"\ufeffHOST: a":                 "a",
		"HOST=a$H":                      "~the variable H",
		"HOST='a$H'":                    "a$H",
		"\ufeffHOST=a":                  "a",
		"[{name: HOST, value: $(H)}]":   "~the variable H",
		"[{name: HOST, value: a$(H)b}]": "~the variable H",
		"[{name: HOST, value: $$(H)}]":  "$(H)",
		"[{name: HOST, value: a$H}]":    "a$H",
		"[{name: HOST, value: '${H}'}]": "~the variable H",
	} {
		vars, _, err := readEnvironment("env", []byte(text))
		if err != nil || len(vars) != 1 {
			t.Errorf("%s: %v, %v", text, vars, err)
			continue
		}
		got := vars[0].value
		if vars[0].elsewhere != "" {
			got += "~" + vars[0].elsewhere
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestOddNames: a variable that no shell has is unknown, and stops nothing.
func TestOddNames(t *testing.T) {
	for _, text := range []string{"A.b=1\nPORT=1", "environment: {A.b: 1, PORT: 1}", "env: [{name: 'A.b', value: x}, {name: PORT, value: '1'}]"} {
		if strings.HasPrefix(text, "environment") {
			text = strings.Replace(text, "A.b", `"A B"`, 1)
		}
		vars, _, err := readEnvironment("env", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var r Report
		r.environment("env", vars)
		var got []string
		for _, v := range r.Environment {
			got = append(got, v.Effect)
		}
		if !slices.Equal(got, []string{effectUnknown, effectSetting}) || len(r.Stops) > 0 {
			t.Errorf("%s: %v %v", text, got, r.Stops)
		}
	}
}
