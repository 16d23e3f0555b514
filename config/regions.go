package config

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/georld/rld/internal/yamlpos"
)

// regionMap is the regions of the cluster.
func regionMap(p *[]Region) value {
	get := func() string { return regionsText(*p) }
	read := func(c *yamlpos.Collector) yamlpos.Reader { return readRegions(c, p) }
	return mapOf("regions, each with peers", get, read)
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
				yamlpos.Field{Name: "cidrs", Read: texts(c, &r.CIDRs, "[10.0.0.0/16, fd00:1::/32]")},
				yamlpos.Field{Name: "weight", Read: gone(c, "regions begin with equal weights, and rld region weight changes them")},
				yamlpos.Field{Name: "added", Read: gone(c, "rld region add gives a new region its share")})
			regions = append(regions, r)
			return ok
		})
		if ok {
			*out = regions
		}
		return ok
	}
}

// gone returns a reader of what is no setting any more.
func gone(c *yamlpos.Collector, instead string) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		return c.Errorf(n.Pos, "", "%s is no setting any more: %s", name, instead)
	}
}

// regionsText returns the regions on one line, for messages.
func regionsText(regions []Region) string {
	if len(regions) == 0 {
		return ""
	}
	type body struct {
		Peers []string `json:"peers,omitempty"`
		CIDRs []string `json:"cidrs,omitempty"`
	}
	out := make([]string, len(regions))
	for i, r := range regions {
		text, err := json.Marshal(body{Peers: r.Peers, CIDRs: r.CIDRs})
		if err != nil {
			return err.Error()
		}
		out[i] = strconv.Quote(r.Name) + ":" + string(text)
	}
	return "{" + strings.Join(out, ",") + "}"
}
