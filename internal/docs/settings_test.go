package docs

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/config"
	"github.com/georld/rld/config/upstream"
)

// TestSettings holds docs/settings.md to the settings: name, flag, variable,
// type, range and default of each. The ranges are found by trying values.
func TestSettings(t *testing.T) {
	all := make(map[string]config.Field)
	var names []string
	for _, f := range config.Fields() {
		all[f.Name] = f
		names = append(names, f.Name)
	}
	settleFacts(t, readPage(t, "docs/settings.md"), names, func(name string) string {
		f := all[name]
		return settingFacts(t, &f)
	})
}

// units names what whole numbers count.
var units = map[string]string{
	"strict.headroom":                 "hits",
	"strict.prefetch":                 "hits",
	"strict.breaker.calls":            "lease requests",
	"hot_key.threshold":               "hits per second",
	"max_keys":                        "keys",
	"shards":                          "shards",
	"grpc.max_connections":            "connections",
	"grpc.max_connections_per_source": "connections",
	"grpc.max_cancelled_calls":        "calls per second",
	"http.max_connections":            "connections",
	"http.max_connections_per_source": "connections",
}

// settingFacts returns the first paragraph of a setting's section.
func settingFacts(t *testing.T, f *config.Field) string {
	t.Helper()
	given := "in the settings file only"
	if f.Flag != "" {
		given = "`--" + f.Flag + "`, `" + f.Env + "`"
	}
	def := "none"
	switch {
	case f.Kind == "map":
		def = "see below"
	case f.Default != "":
		def = "`" + f.Default + "`"
	}
	return "- Given as: " + given + "\n- Type: " + settingKind(t, f) + "\n- Default: " + def
}

// settingKind returns type, unit and range of a setting.
func settingKind(t *testing.T, f *config.Field) string {
	t.Helper()
	switch f.Kind {
	case "bool":
		return "boolean"
	case "word":
		return "one of " + listed(settingWords(t, f))
	case "path":
		return "path"
	case "mode":
		return "mode of a file, in octal digits"
	case "url":
		return "absolute http or https URL"
	case "map":
		return "map"
	case "host:port":
		return "address, `host:port`"
	case "host:port,...":
		return "list of addresses, `host:port`"
	case "name":
		return "name"
	case "key=value,...":
		return "list of pairs, `KEY=VALUE`"
	case "name,...":
		return "list of names"
	case "int":
		return "whole number of " + intUnit(t, f.Name) + ", " + intRange(t, f)
	case "ratio":
		return "ratio, " + ratioRange(t, f)
	case "duration":
		return "duration, " + durationRange(t, f)
	}
	t.Errorf("%s: a kind that this test does not know: %s", f.Name, f.Kind)
	return ""
}

func intUnit(t *testing.T, name string) string {
	t.Helper()
	if units[name] == "" {
		t.Errorf("%s: add its unit to this test", name)
	}
	return units[name]
}

// accepts reports whether a daemon of a cluster would start with a value.
func accepts(name, text string) bool {
	flags := map[string]string{"region": "us-east"}
	if name == "control.voter" && text == "only" {
		flags["state-dir"] = "/var/lib/rld" // without strict.replicas
	}
	for _, f := range config.Fields() {
		if f.Name == name {
			flags[f.Flag] = text
		}
	}
	_, err := config.Load(config.Sources{Flags: flags})
	return err == nil
}

// settingWords returns the words that a setting accepts, as its error lists
// them.
func settingWords(t *testing.T, f *config.Field) []string {
	t.Helper()
	_, err := config.Load(config.Sources{Flags: map[string]string{f.Flag: "nonesuch"}})
	var faults config.Faults
	if !errors.As(err, &faults) || len(faults) != 1 {
		t.Fatalf("%s=nonesuch: %v", f.Name, err)
	}
	found := regexp.MustCompile(`is none of (.*)`).FindStringSubmatch(faults[0].Problem)
	if found == nil {
		t.Fatalf("%s: the words are not in %q", f.Name, faults[0].Problem)
	}
	words := strings.Split(found[1], ", ")
	for _, w := range words {
		if !accepts(f.Name, w) {
			t.Errorf("%s: %s is refused", f.Name, w)
		}
	}
	return words
}

// bounds returns the least and the greatest number that ok accepts around one
// that it accepts. It tries numbers from 0 to most; a greatest of most means
// that there is no bound.
func bounds(around, most int64, ok func(int64) bool) (least, greatest int64) {
	low, high := int64(-1), around // low is refused, high accepted
	for high-low > 1 {
		if mid := (low + high) / 2; ok(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	least = high
	if ok(most) {
		return least, most
	}
	low, high = around, most // low is accepted, high refused
	for high-low > 1 {
		if mid := low + (high-low)/2; ok(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return least, low
}

func intRange(t *testing.T, f *config.Field) string {
	t.Helper()
	def, err := strconv.ParseInt(f.Default, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	ok := func(n int64) bool { return accepts(f.Name, strconv.FormatInt(n, 10)) }
	if !ok(def) {
		t.Fatalf("%s: the default is refused", f.Name)
	}
	var few []string
	for n := range int64(200) {
		if ok(n) {
			few = append(few, strconv.FormatInt(n, 10))
		}
	}
	if !ok(199) {
		return "one of " + listed(few)
	}
	least, greatest := bounds(def, 1<<50, ok)
	return fmt.Sprintf("%d to %d", least, greatest)
}

func ratioRange(t *testing.T, f *config.Field) string {
	t.Helper()
	ok := func(ppm int64) bool { return accepts(f.Name, strconv.FormatFloat(float64(ppm)/1e6, 'f', 6, 64)) }
	def, err := strconv.ParseFloat(f.Default, 64)
	if err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	least, greatest := bounds(int64(def*1e6), 4_000_000_000, ok)
	if least == 0 && greatest == 1_000_000 {
		return "0 to 1"
	}
	if least != 1 || greatest != 1_000_000 {
		t.Fatalf("%s: %d to %d millionths: describe that range here", f.Name, least, greatest)
	}
	return "above 0 and at most 1"
}

// durationRange finds the range to the millisecond. 0 and off may stand apart
// from it.
func durationRange(t *testing.T, f *config.Field) string {
	t.Helper()
	const most = int64(1_000_000 * time.Hour / time.Millisecond)
	ok := func(ms int64) bool { return accepts(f.Name, (time.Duration(ms) * time.Millisecond).String()) }
	apart := ""
	if accepts(f.Name, "off") {
		apart = "`off`"
	}
	tries := []int64{1, 10, 100, 1_000, 10_000, 60_000, 600_000}
	at := slices.IndexFunc(tries, ok)
	if at < 0 {
		return apart + " only"
	}
	positive := func(ms int64) bool { return ms > 0 && ok(ms) }
	least, greatest := bounds(tries[at], most, positive)
	if apart == "" && least > 1 && ok(0) {
		apart = "`0`"
	}
	if apart == "" && ok(0) {
		least = 0
	}
	text := "`" + shortTime(least) + "` to `" + shortTime(greatest) + "`"
	if greatest == most {
		text = "`" + shortTime(least) + "` or more"
	}
	if apart != "" {
		text += ", or " + apart
	}
	return text
}

// shortTime returns 24h for 24h0m0s.
func shortTime(ms int64) string {
	s := (time.Duration(ms) * time.Millisecond).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// TestUpstreamVariables tries every variable of envoyproxy/ratelimit that the
// page maps to settings.
func TestUpstreamVariables(t *testing.T) {
	values := map[string]string{
		"PORT": "1234", "GRPC_PORT": "1234", "DEBUG_PORT": "1234", "HOST": "localhost", "GRPC_HOST": "localhost",
		"DEBUG_HOST": "localhost", "RUNTIME_IGNOREDOTFILES": "true", "GRPC_UDS": "/tmp/rld.sock", "GRPC_MAX_CONNECTION_AGE": "1h",
		"GRPC_MAX_CONNECTION_AGE_GRACE": "1h", "LOG_LEVEL": "warn", "LOG_FORMAT": "json", "NEAR_LIMIT_RATIO": "0.5",
	}
	_, table, _ := strings.Cut(readPage(t, "docs/settings.md").text, "## Variables of envoyproxy/ratelimit")
	rows := regexp.MustCompile("(?m)^\\| ((?:`[A-Z_]+`(?:, )?)+) \\| `([a-z_.]+)` \\|$").FindAllStringSubmatch(table, -1)
	if len(rows) < 15 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	for _, row := range rows {
		for _, name := range strings.Split(strings.ReplaceAll(row[1], "`", ""), ", ") {
			value := values[name]
			if value == "" {
				value = "true"
			}
			l, err := config.Load(config.Sources{Environ: []string{name + "=" + value, "RUNTIME_ROOT=/limits"}})
			if err != nil {
				t.Errorf("%s=%s: %v", name, value, err)
				continue
			}
			if from := string(l.Origin(row[2])); !strings.Contains(from, name) {
				t.Errorf("%s: %s comes from %s", name, row[2], from)
			}
		}
	}
}

// TestUpstreamVariablesNamed: the page names each variable of the reference
// that has an effect.
func TestUpstreamVariablesNamed(t *testing.T) {
	_, section, _ := strings.Cut(readPage(t, "docs/settings.md").text, "## Variables of envoyproxy/ratelimit")
	for _, v := range upstream.Variables() {
		has := v.Kind != upstream.Unneeded && v.Kind != upstream.Replaced
		if has && !regexp.MustCompile("`"+v.Name+"[`=]").MatchString(section) {
			t.Errorf("docs/settings.md does not name %s", v.Name)
		}
	}
}
