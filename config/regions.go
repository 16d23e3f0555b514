package config

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/rules"
)

// regionMap is the regions of the cluster.
func regionMap(p *[]Region) value {
	get := func() string { return regionsText(*p) }
	read := func(c *yamlpos.Collector) yamlpos.Reader { return readRegions(c, p) }
	return mapOf("regions, each with peers and weight", get, read)
}

func readRegions(c *yamlpos.Collector, out *[]Region) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		var regions []Region
		ok := c.Each(n, name, func(key string, p yamlpos.Pair) bool {
			r := Region{Name: key}
			if err := checkName(key); err != nil {
				return c.Errorf(p.Key.Pos, "", "%s", err)
			}
			ok := p.Value.IsNull() || c.Fields(p.Value, "region "+key,
				yamlpos.Field{Name: "peers", Read: texts(c, &r.Peers, "[10.0.0.1:7070, 10.0.0.2:7070]")},
				yamlpos.Field{Name: "weight", Read: settingOf(c, weight(&r.Weight))},
				yamlpos.Field{Name: "added", Read: c.Bool(&r.Added)})
			regions = append(regions, r)
			return ok
		})
		if ok {
			*out = regions
		}
		return ok
	}
}

// weight parses the weight of a region.
func weight(out *rules.PPM) func(string) error {
	return func(s string) error {
		if err := ratio(out).set(s); err != nil {
			return err
		}
		if *out == 0 || *out > rules.Whole {
			return fmt.Errorf("%s is out of range: above 0%% and at most 100%%", excerpt(s))
		}
		return nil
	}
}

// regionsText returns the regions on one line, for messages.
func regionsText(regions []Region) string {
	if len(regions) == 0 {
		return ""
	}
	type body struct {
		Peers  []string `json:"peers,omitempty"`
		Weight string   `json:"weight,omitempty"`
		Added  bool     `json:"added,omitempty"`
	}
	out := make([]string, len(regions))
	for i, r := range regions {
		b := body{Peers: r.Peers, Added: r.Added}
		if r.Weight != 0 {
			b.Weight = r.Weight.String()
		}
		text, err := json.Marshal(b)
		if err != nil {
			return err.Error()
		}
		out[i] = strconv.Quote(r.Name) + ":" + string(text)
	}
	return "{" + strings.Join(out, ",") + "}"
}
