package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/web"
)

// value is a setting as text, the form that flags, environment and file share.
type value struct {
	kind string // for the help of a flag: "addr", "int", ...
	// set parses and stores a text. The error names the fault and a correct
	// form.
	set func(text string) error
	get func() string
	// check returns the fault of a value out of range, "" for none; nil where
	// every value of the type is valid.
	check func() string
	// without describes the effect of leaving the setting out. The empty text
	// is then no value. It is "" for other settings.
	without string
	// words are all values that the setting may have; nil for other settings.
	words []string
	// read makes the reader of a value that may be more than a single one in a
	// file, and datum returns it for printing; nil for other settings.
	read  func(c *yamlpos.Collector) yamlpos.Reader
	datum func() datum
}

// mapping is the mapping of /api/v1/rate_limit.
func mapping(p *web.Mapping) value {
	get := func() string {
		b, err := json.Marshal(*p)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	read := func(c *yamlpos.Collector) yamlpos.Reader { return readMapping(c, p) }
	return mapOf("domain and descriptors", get, read)
}

// mapOf is a map, which only a file can give. get returns it as JSON.
func mapOf(members string, get func() string, read func(*yamlpos.Collector) yamlpos.Reader) value {
	return value{
		kind:  "map",
		set:   func(string) error { return errors.New("must be a map of " + members) },
		get:   get,
		read:  read,
		datum: func() datum { return mapDatumOf(get()) },
	}
}

func readMapping(c *yamlpos.Collector, out *web.Mapping) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		var m web.Mapping
		entry := func(n *yamlpos.Node) bool {
			var e web.MappedEntry
			ok := c.Fields(n, "an entry",
				yamlpos.Field{Name: "param", Read: c.Text(&e.Param)},
				yamlpos.Field{Name: "key", Read: c.Text(&e.Key)},
				yamlpos.Field{Name: "fallback", Read: c.Text(&e.Fallback)},
				yamlpos.Field{Name: "fallback_key", Read: c.Text(&e.FallbackKey)})
			last := len(m.Descriptors) - 1
			m.Descriptors[last] = append(m.Descriptors[last], e)
			return ok
		}
		descriptor := func(n *yamlpos.Node) bool {
			m.Descriptors = append(m.Descriptors, nil)
			return c.ListOf(maxSettingsBytes, "[{param: user}]", entry)(n, "a descriptor")
		}
		ok := c.Fields(n, name,
			yamlpos.Field{Name: "domain", Read: c.Text(&m.Domain)},
			yamlpos.Field{Name: "descriptors", Read: c.ListOf(maxSettingsBytes, "[[{param: user}]]", descriptor)})
		if ok {
			*out = m
		}
		return ok
	}
}

func text(p *string, kind string) value {
	return value{
		kind: kind,
		set:  func(s string) error { *p = s; return nil },
		get:  func() string { return *p },
	}
}

// given is a text that must not be empty: an empty one is more often an unset
// variable of a script than the wish to leave the setting out.
func given(p *string, kind, without string) value {
	v := text(p, kind)
	v.without = without
	set := v.set
	v.set = func(s string) error {
		if s == "" {
			return fmt.Errorf("is empty: give a %s, or leave it out for %s", kind, without)
		}
		return set(s)
	}
	return v
}

func path(p *string, without string) value { return given(p, "path", without) }

// parsed is a single value that parse reads and show writes. The error of
// another text is that it "is" fault.
func parsed[T any](p *T, kind, fault string, parse func(string) (T, error), show func(T) string) value {
	return value{
		kind: kind,
		set: func(s string) error {
			v, err := parse(s)
			if err != nil {
				return fmt.Errorf("%q is %s", s, fault)
			}
			*p = v
			return nil
		},
		get: func() string { return show(*p) },
	}
}

func boolean(p *bool) value {
	return parsed(p, "bool", "neither true nor false", strconv.ParseBool, strconv.FormatBool)
}

// whole is a whole number, with or without underscores: 1_000_000.
func whole(p *int) value {
	parse := func(s string) (int, error) { return strconv.Atoi(strings.ReplaceAll(s, "_", "")) }
	return parsed(p, "int", "not a whole number such as 1000000", parse, strconv.Itoa)
}

// number is a whole number from least to most.
func number(p *int, least, most int) value {
	v := whole(p)
	v.check = func() string {
		if *p < least || *p > most {
			return fmt.Sprintf("%d is out of range: %d to %d", *p, least, most)
		}
		return ""
	}
	return v
}

func duration(p *time.Duration) value {
	return parsed(p, "duration", "not a duration with a unit such as 250ms, 10s or 24h", time.ParseDuration, shortDuration)
}

// noBound is the upper bound of a duration without one.
const noBound = time.Duration(math.MaxInt64)

// between is a duration from least to most.
func between(p *time.Duration, least, most time.Duration) value {
	v := duration(p)
	v.check = func() string {
		switch {
		case *p >= least && *p <= most:
			return ""
		case most == noBound:
			return fmt.Sprintf("%s is too short: %s or more", v.get(), shortDuration(least))
		}
		return fmt.Sprintf("%s is out of range: %s to %s", v.get(), shortDuration(least), shortDuration(most))
	}
	return v
}

// orZero returns a duration that may also be 0.
func orZero(v value) value {
	check := v.check
	v.check = func() string {
		if v.get() == shortDuration(0) {
			return ""
		}
		return check()
	}
	return v
}

// shortDuration returns a duration without zero units: 24h, not 24h0m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// choice is one of a few words, in any letter case.
func choice[T ~string](p *T, allowed ...T) value {
	fault := "none of " + words(allowed)
	parse := func(s string) (T, error) {
		i := slices.IndexFunc(allowed, func(a T) bool { return strings.EqualFold(s, string(a)) })
		if i < 0 {
			return "", strconv.ErrSyntax
		}
		return allowed[i], nil
	}
	v := parsed(p, "word", fault, parse, func(word T) string { return string(word) })
	for _, word := range allowed {
		v.words = append(v.words, string(word))
	}
	v.check = func() string {
		if slices.Contains(allowed, *p) {
			return ""
		}
		return fmt.Sprintf("%q is %s", string(*p), fault)
	}
	return v
}

func words[T ~string](ws []T) string {
	out := make([]string, len(ws))
	for i, w := range ws {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}

// ratio is a part of one, written 0.8 or 80% and stored in parts per million.
func ratio(p *rules.PPM) value {
	v := parsed(p, "ratio", "not a ratio such as 0.8 or 80%", parseRatio, shortRatio)
	v.check = func() string {
		if *p == 0 || *p > rules.Whole {
			return shortRatio(*p) + " is out of range: above 0 and at most 1"
		}
		return ""
	}
	return v
}

// portion is a ratio that may be 0.
func portion(p *rules.PPM) value {
	v := ratio(p)
	v.check = func() string {
		if *p > rules.Whole {
			return shortRatio(*p) + " is out of range: 0 to 1"
		}
		return ""
	}
	return v
}

func parseRatio(s string) (rules.PPM, error) {
	number, percent := strings.CutSuffix(s, "%")
	f, err := strconv.ParseFloat(number, 64)
	if percent {
		f /= 100
	}
	ppm := math.Round(f * 1_000_000)
	if !(ppm >= 0 && ppm <= math.MaxUint32) {
		return 0, strconv.ErrRange
	}
	return rules.PPM(ppm), err
}

func shortRatio(p rules.PPM) string { return strconv.FormatFloat(float64(p)/1_000_000, 'f', -1, 64) }
