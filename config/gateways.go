package config

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/georld/rld/gateway"
	"github.com/georld/rld/internal/yamlpos"
)

// gatewayMap is the mappings for gateways.
func gatewayMap(p *map[string]gateway.Settings) value {
	get := func() string {
		if len(*p) == 0 {
			return ""
		}
		b, err := json.Marshal(*p)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	read := func(c *yamlpos.Collector) yamlpos.Reader { return gatewayReader{c}.read(p) }
	return mapOf("mappings, each with domain and descriptors", get, read)
}

// gateways adds the faults of the mappings.
func (v *validator) gateways(c *Config) {
	for _, name := range slices.Sorted(maps.Keys(c.Gateways)) {
		s, place := c.Gateways[name], "gateways."+name
		if !gateway.ValidName(name) {
			v.fault("gateways", "%q is no name of a mapping: 1 to 63 letters, digits, underscores and dashes", name)
			continue
		}
		for _, err := range each(s.Validate()) {
			if fault, ok := errors.AsType[*gateway.SettingFault](err); ok {
				v.fault(place+"."+fault.Place, "%s", fault.Problem)
			}
		}
	}
}

// gatewayReader reads the mappings of a settings file. Validate checks what is
// more than the type of a value.
type gatewayReader struct{ *yamlpos.Collector }

// wholeOf reads a whole number. Validate reports a greater one than high, since
// it knows the place.
func wholeOf[T int | uint64](g gatewayReader, out *T, low, high T) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		if v, err := strconv.ParseUint(n.Text, 10, 31); n.Kind == yamlpos.Scalar && err == nil && T(v) > high {
			*out = T(v)
			return true
		}
		return yamlpos.Whole(g.Collector, out, low, high)(n, name)
	}
}

func (g gatewayReader) read(out *map[string]gateway.Settings) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		if n.IsNull() || n.Kind == yamlpos.Map && len(n.Pairs) == 0 {
			*out = nil
			return true
		}
		found := make(map[string]gateway.Settings)
		ok := g.Each(n, name, func(key string, p yamlpos.Pair) bool {
			if !gateway.ValidName(key) {
				return g.Errorf(p.Key.Pos, "", "%s is no name of a mapping: 1 to 63 letters, digits, underscores and dashes",
					yamlpos.Quote(key))
			}
			var s gateway.Settings
			ok := g.mapping(p.Value, "mapping "+key, &s)
			found[key] = s
			return ok
		})
		if ok {
			*out = found
		}
		return ok
	}
}

func (g gatewayReader) mapping(n *yamlpos.Node, name string, s *gateway.Settings) bool {
	descriptor := func(n *yamlpos.Node) bool {
		s.Descriptors = append(s.Descriptors, nil)
		last := &s.Descriptors[len(s.Descriptors)-1]
		return g.ListOf(maxSettingsBytes, "[{key: ip, client: {hops: 1}}]", func(n *yamlpos.Node) bool {
			var e gateway.Entry
			ok := g.Fields(n, "an entry", append(g.source(&e.Source),
				yamlpos.Field{Name: "key", Read: g.Text(&e.Key)},
				yamlpos.Field{Name: "when_missing", Read: g.whenMissing(&e.WhenMissing)})...)
			*last = append(*last, e)
			return ok
		})(n, "a descriptor")
	}
	return g.Fields(n, name,
		yamlpos.Field{Name: "domain", Read: g.Text(&s.Domain)},
		yamlpos.Field{Name: "target", Read: g.Text((*string)(&s.Target))},
		yamlpos.Field{Name: "descriptors", Read: g.ListOf(maxSettingsBytes, "[{key: ip, client: {hops: 1}}]", descriptor)},
		yamlpos.Field{Name: "exempt", Read: g.client(&s.Exempt)},
		yamlpos.Field{Name: "cost", Read: g.cost(&s.Cost)},
		yamlpos.Field{Name: "on_no_match", Read: g.Text((*string)(&s.OnNoMatch))},
		yamlpos.Field{Name: "action", Read: g.Text((*string)(&s.Action))},
		yamlpos.Field{Name: "challenge_url", Read: g.Text(&s.ChallengeURL)},
		yamlpos.Field{Name: "deny_status", Read: wholeOf(g, &s.DenyStatus, 400, 599)},
		yamlpos.Field{Name: "failure_status", Read: wholeOf(g, &s.FailureStatus, 400, 599)})
}

func (g gatewayReader) cost(out **gateway.Cost) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		var c gateway.Cost
		*out = &c
		return g.Fields(n, name,
			yamlpos.Field{Name: "header", Read: g.Text(&c.Header)},
			yamlpos.Field{Name: "max", Read: wholeOf(g, &c.Max, 1, 1_000_000)})
	}
}

// source returns the fields of a source.
func (g gatewayReader) source(s *gateway.Source) []yamlpos.Field {
	join := func(n *yamlpos.Node) bool {
		var part gateway.Source
		ok := g.Fields(n, "a source", g.source(&part)...)
		s.Join = append(s.Join, part)
		return ok
	}
	return []yamlpos.Field{
		{Name: "header", Read: g.Text(&s.Header)},
		{Name: "client", Read: g.client(&s.Client)},
		{Name: "method", Read: g.Bool(&s.Method)},
		{Name: "template", Read: g.template(&s.Template)},
		{Name: "host", Read: g.Bool(&s.Host)},
		{Name: "cookie", Read: g.Text(&s.Cookie)},
		{Name: "claim", Read: g.claim(&s.Claim)},
		{Name: "query", Read: g.Text(&s.Query)},
		{Name: "constant", Read: g.Text(&s.Constant)},
		{Name: "join", Read: g.ListOf(maxSettingsBytes, "{header: User-Agent, hash: true}", join)},
		{Name: "hash", Read: g.Bool(&s.Hash)},
	}
}

func (g gatewayReader) client(out **gateway.Client) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		var c gateway.Client
		*out = &c
		return g.Fields(n, name,
			yamlpos.Field{Name: "hops", Read: wholeOf(g, &c.Hops, 1, 16)},
			yamlpos.Field{Name: "trusted", Read: texts(g.Collector, &c.Trusted, "[10.0.0.0/8, fd00::/8]")},
			yamlpos.Field{Name: "header", Read: g.Text(&c.Header)},
			yamlpos.Field{Name: "v4", Read: wholeOf(g, &c.V4, 1, 32)},
			yamlpos.Field{Name: "v6", Read: wholeOf(g, &c.V6, 1, 128)},
			yamlpos.Field{Name: "networks", Read: g.networks(&c.Networks)})
	}
}

// networks reads named lists of prefixes.
func (g gatewayReader) networks(out *map[string][]string) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		found := make(map[string][]string)
		*out = found
		return g.Each(n, name, func(key string, p yamlpos.Pair) bool {
			var list []string
			ok := texts(g.Collector, &list, "[192.0.2.0/24]")(p.Value, key)
			found[key] = list
			return ok
		})
	}
}

func (g gatewayReader) claim(out **gateway.Claim) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		var c gateway.Claim
		*out = &c
		return g.Fields(n, name,
			yamlpos.Field{Name: "name", Read: g.Text(&c.Name)},
			yamlpos.Field{Name: "header", Read: g.Text(&c.Header)})
	}
}

// template reads one template or a list of them.
func (g gatewayReader) template(out *[]string) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		if n.Kind == yamlpos.List {
			return texts(g.Collector, out, "[/v1/*, '/users/{id}']")(n, name)
		}
		var text string
		ok := g.Text(&text)(n, name)
		*out = []string{text}
		return ok
	}
}

// whenMissing reads skip, deny or {constant: X}.
func (g gatewayReader) whenMissing(out *gateway.WhenMissing) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		if n.Kind == yamlpos.Map {
			ok := g.Fields(n, name, yamlpos.Field{Name: "constant", Read: g.Text(&out.Constant)})
			if ok && out.Constant == "" {
				return g.Errorf(n.Pos, "", "%s: the constant is empty: give a text such as none, or skip", name)
			}
			return ok
		}
		var word string
		if !g.Text(&word)(n, name) {
			return false
		}
		switch word {
		case "skip":
		case "deny":
			out.Deny = true
		default:
			return g.Errorf(n.Pos, "", "%s: %s is none of skip, deny and {constant: TEXT}", name, yamlpos.Quote(word))
		}
		return true
	}
}
