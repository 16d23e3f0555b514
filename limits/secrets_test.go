package limits

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestFaultsHoldNoSecret: a file that does not look like limits gives one fault
// with its place and the expected form, and with none of its text.
func TestFaultsHoldNoSecret(t *testing.T) {
	for _, text := range []string{
		"hunter2",
		"hunter2\n",
		"root:$6$hunter2$hunter2:19000:0:99999:7:::\ndaemon:*:19000:0:99999:7:::\n",
		"token: hunter2\n",
		"domain: hunter2.example\npassword: hunter2\n",
		"- hunter2\n- hunter2\n",
		"password: [hunter2\n",
		"password: \"hunter2\n",
		"domain: example\npassword: *hunter2\n",
		"*hunter2",
		"!hunter2 x",
		"%hunter2",
		"&hunter2",
		"# hunter2",
		"-----BEGIN PRIVATE KEY-----\nhunter2==\n-----END PRIVATE KEY-----\n",
		"hunter2: hunter2: hunter2",
		"\thunter2:\n\thunter2",
		"hunter2\x01",
		"hunter2\xff",
		"a: 1\n---\nhunter2: 2\n",
		"{hunter2: hunter2}",
		"{hunter2",
		"? hunter2\n: hunter2",
		strings.Repeat("[", 200) + "hunter2",
	} {
		set, found := parseOne(text)
		out, err := json.Marshal(found)
		if err != nil {
			t.Fatal(err)
		}
		if set != nil || len(found) != 1 || strings.Contains(found.String()+string(out), "hunter2") {
			t.Errorf("%q: %s%s", text, found, out)
		}
		if text != "&hunter2" && text != "# hunter2" && !strings.Contains(found[0].Message, "does not look like limits") || found[0].Line == 0 || found[0].File != "f.yaml" {
			t.Errorf("%q: %+v: want the place and the expected form", text, found[0])
		}
	}
	for _, text := range []string{
		"domian: d\ndescriptors: [{key: 7up, rate_limit: 5}]",
		"domain: d\ndescriptor: []",
		"domain: d\ndescriptors:\n  - key: a\n   value: b\n",
		"domain: [d\ndescriptors: []",
	} {
		if _, found := parseOne(text); len(found) == 0 || found[0].Source == "" || strings.Contains(found.String(), "look like") {
			t.Errorf("%q: %s: want the faults with their lines", text, found)
		}
	}
}

// TestTextsArePrintable: a domain, key, value or name that would steer a
// terminal, end a line of metrics or run backwards is refused with its place.
func TestTextsArePrintable(t *testing.T) {
	for _, bad := range []string{`\e[31m`, `a\nb`, `a\0`, `\x7f`, `\x9b`, `\u202eabc`, `\u2066x`, `\u2028`, `\u2029`} {
		for _, text := range []string{
			`domain: "` + bad + `"` + "\ndescriptors: []\n",
			"domain: d\ndescriptors:\n  - key: \"" + bad + "\"\n    rate_limit: {unit: day, requests_per_unit: 1}\n",
			"domain: d\ndescriptors:\n  - key: k\n    value: \"" + bad + "\"\n    rate_limit: {unit: day, requests_per_unit: 1}\n",
			"domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unit: day, requests_per_unit: 1, name: \"" + bad + "\"}\n",
		} {
			set, found := parseOne(text)
			if set != nil || len(found) == 0 || !strings.Contains(found[0].Message, "control character, U+") || found[0].Line == 0 {
				t.Errorf("%q: %s", text, found)
			}
		}
	}
	if set, found := parseOne("domain: d\ndescriptors:\n  - key: \"größe 日本 👩\u200d💻\"\n    rate_limit: {unit: day, requests_per_unit: 1}\n"); set == nil {
		t.Errorf("texts of other languages are refused: %s", found)
	}
}
