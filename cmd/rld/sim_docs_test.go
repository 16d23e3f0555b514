package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
	"github.com/georld/rld/sim/scenario"
)

func simulationGuide(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/simulation.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// inCode returns the words that the guide has between backquotes.
func inCode(guide string) map[string]bool {
	words := make(map[string]bool)
	for _, span := range regexp.MustCompile("`[^`\n]+`").FindAllString(guide, -1) {
		for _, word := range regexp.MustCompile("[a-z0-9_]+").FindAllString(span, -1) {
			words[word] = true
		}
	}
	return words
}

// TestGuideScenario runs the scenario of the guide, and compares the guide with
// the result.
func TestGuideScenario(t *testing.T) {
	guide := simulationGuide(t)
	_, text, _ := strings.Cut(guide, "```yaml\n")
	text, _, found := strings.Cut(text, "```")
	if !found {
		t.Fatal("no scenario in the guide")
	}
	cfg, err := scenario.Parse("guide.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := sim.Run(cfg, sim.Options{Series: true, Auditors: audit.All})
	if err != nil {
		t.Fatal(err)
	}
	if r.Code() != sim.ExitFine {
		t.Errorf("the scenario of the guide finds something: %+v", r.Auditors)
	}
	said := inCode(guide)
	for _, a := range r.Auditors {
		if !said[a.Name] {
			t.Errorf("the guide does not say what auditor %s is", a.Name)
		}
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(data, &keys); err != nil {
		t.Fatal(err)
	}
	for key := range keys {
		if !said[key] {
			t.Errorf("the guide does not name %s of results", key)
		}
	}
}

// TestGuideFields checks that the guide names every field of the language. It
// reads the fields from the error messages for an unknown field.
func TestGuideFields(t *testing.T) {
	const nonesuch = "nonesuchfield"
	const rest = "\nlimits:\n  domain: d\n  descriptors:\n    - key: k\n      rate_limit: {unit: second, requests_per_unit: 1}\n"
	const clients = "workloads: [{descriptor: {k: x}, rate: 1}]\n"
	bad := "{" + nonesuch + ": 1}"
	workload := func(field string) string {
		return rest + "workloads: [{descriptor: {k: x}, rate: 1, " + field + ": " + bad + "}]\n"
	}
	said := inCode(simulationGuide(t))
	for what, text := range map[string]string{
		"scenario": nonesuch + ": 1" + rest,
		"gossip":   "gossip: " + bad + rest,
		"clock":    "clock: " + bad + rest,
		"members":  "members: " + bad + rest,
		"expect":   "expect: " + bad + rest,
		"links":    "links: " + bad + rest + clients,
		"link":     "links: {region: " + bad + "}" + rest + clients,
		"between":  "links: {between: [" + bad + "]}" + rest + clients,
		"workload": rest + "workloads: [" + bad + "]\n",
		"bursts":   workload("bursts"),
		"pulse":    workload("pulse"),
		"moving":   workload("moving"),
		"retry":    workload("retry"),
		"fault":    "faults: [" + bad + "]" + rest + clients,
		"kinds":    "faults: [{fault: " + nonesuch + "}]" + rest + clients,
		"outside":  "outside: {eu: " + nonesuch + "}" + rest + clients,
		"shape":    "links: {region: {shape: " + nonesuch + "}}" + rest + clients,
	} {
		_, err := scenario.Parse("x.yaml", []byte(text))
		if err == nil {
			t.Errorf("%s: a field that does not exist was taken", what)
			continue
		}
		hint := regexp.MustCompile(`(?:the fields of [a-z ]+ are|it is one of) (.*)`).FindStringSubmatch(err.Error())
		if hint == nil {
			t.Errorf("%s: the fields are not in\n%v", what, err)
			continue
		}
		for _, name := range regexp.MustCompile(`, | and `).Split(hint[1], -1) {
			if !said[name] {
				t.Errorf("the guide does not say what %s is (%s)", name, what)
			}
		}
	}
}

// TestGuideScenarios holds each scenario that rld brings to a title and to a
// name that no other is mistaken for.
func TestGuideScenarios(t *testing.T) {
	names := scenario.Names()
	for _, name := range names {
		if cfg, ok := scenario.Builtin(name); !ok || cfg.Title == "" {
			t.Errorf("%s has no title", name)
		}
		if closest := suggest.Closest(name, names); closest != name {
			t.Errorf("%s: the closest name is %q", name, closest)
		}
	}
}
