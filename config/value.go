package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/web"
)

// value is a setting as text: what flags, environment and file all give.
type value struct {
	kind string // for the help of a flag: "addr", "int", ...
	// set takes the text over, or says what is wrong and what would be right.
	set func(text string) error
	get func() string
	// without says what holds when the text is empty, which is then refused
	// as a value; "" for a setting that has no such state.
	without string
	// datum returns what is printed where that is no single value; nil for
	// all others.
	datum func() datum
}

// mapping is no single value: only a file can hold it.
func mapping(p *web.Mapping) (value, func(*yaml.Node) error) {
	none := func(string) error { return errors.New("must be a map of domain and descriptors") }
	get := func() string {
		b, err := json.Marshal(*p)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	read := func(n *yaml.Node) error {
		if n.Kind != yaml.MappingNode {
			return none("")
		}
		var m web.Mapping
		if err := decodeNode(n, &m); err != nil {
			return err
		}
		*p = m
		return nil
	}
	return value{kind: "map", set: none, get: get, datum: func() datum { return mappingDatum(p) }}, read
}

func mappingDatum(m *web.Mapping) datum {
	var descriptors []datum
	for _, entries := range m.Descriptors {
		var list []datum
		for _, e := range entries {
			var pairs []pair
			for _, p := range []struct{ key, text string }{
				{"param", e.Param}, {"key", e.Key}, {"fallback", e.Fallback}, {"fallback_key", e.FallbackKey},
			} {
				if p.text != "" {
					pairs = append(pairs, pair{key: p.key, datum: textDatum(p.text)})
				}
			}
			list = append(list, mapDatum(pairs...))
		}
		descriptors = append(descriptors, listDatum(list...))
	}
	return mapDatum(pair{key: "domain", datum: textDatum(m.Domain)},
		pair{key: "descriptors", datum: listDatum(descriptors...)})
}

func text(p *string, kind string) value {
	return value{
		kind: kind,
		set:  func(s string) error { *p = s; return nil },
		get:  func() string { return *p },
	}
}

// given is a text that is not empty: an empty one is a variable of a script that
// was never set more often than a wish for what holds without it.
func given(p *string, kind, without string) value {
	v := text(p, kind)
	v.without = without
	take := v.set
	v.set = func(s string) error {
		if s == "" {
			return fmt.Errorf("is empty: give a %s, or leave it out for %s", kind, without)
		}
		return take(s)
	}
	return v
}

func path(p *string, without string) value { return given(p, "path", without) }

func boolean(p *bool) value {
	return value{
		kind: "bool",
		set: func(s string) error {
			b, err := strconv.ParseBool(s)
			if err != nil {
				return fmt.Errorf("%q is neither true nor false", s)
			}
			*p = b
			return nil
		},
		get: func() string { return strconv.FormatBool(*p) },
	}
}

// whole is a whole number; 1_000_000 is read too.
func whole(p *int) value {
	return value{
		kind: "int",
		set: func(s string) error {
			n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
			if err != nil || n > math.MaxInt || n < math.MinInt {
				return fmt.Errorf("%q is not a whole number such as 1000000", s)
			}
			*p = int(n)
			return nil
		},
		get: func() string { return strconv.Itoa(*p) },
	}
}

func duration(p *time.Duration) value {
	return value{
		kind: "duration",
		set: func(s string) error {
			d, err := time.ParseDuration(s)
			if err != nil {
				return fmt.Errorf("%q is not a duration with a unit such as 250ms, 10s or 24h", s)
			}
			*p = d
			return nil
		},
		get: func() string { return shortDuration(*p) },
	}
}

// shortDuration is 24h for what the standard library writes as 24h0m0s.
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
	return value{
		kind: "word",
		set: func(s string) error {
			for _, a := range allowed {
				if strings.EqualFold(s, string(a)) {
					*p = a
					return nil
				}
			}
			return fmt.Errorf("%q is none of %s", s, words(allowed))
		},
		get: func() string { return string(*p) },
	}
}

func words[T ~string](ws []T) string {
	out := make([]string, len(ws))
	for i, w := range ws {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}

// ratio is a share of one, written 0.8 or 80%, kept in whole parts per
// million.
func ratio(p *rules.PPM) value {
	return value{
		kind: "ratio",
		set: func(s string) error {
			number, percent := strings.CutSuffix(s, "%")
			f, err := strconv.ParseFloat(number, 64)
			if percent {
				f /= 100
			}
			ppm := math.Round(f * 1_000_000)
			if err != nil || !(ppm >= 0 && ppm <= math.MaxUint32) {
				return fmt.Errorf("%q is not a ratio such as 0.8 or 80%%", s)
			}
			*p = rules.PPM(ppm)
			return nil
		},
		get: func() string { return shortRatio(*p) },
	}
}

func shortRatio(p rules.PPM) string { return strconv.FormatFloat(float64(p)/1_000_000, 'f', -1, 64) }
