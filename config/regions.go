package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/georld/rld/rules"
)

// nodeFaults is what is wrong inside a value of the file that is no single
// one, each with its own place.
type nodeFaults []nodeFault

type nodeFault struct {
	at      place
	inside  string // which part of the value: ".eu-west-1.peers[1]"
	problem string
}

func (fs *nodeFaults) add(n *yaml.Node, inside, format string, args ...any) {
	*fs = append(*fs, nodeFault{placeOf(n), inside, fmt.Sprintf(format, args...)})
}

// Error lists the faults without their places.
func (fs nodeFaults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.problem
	}
	return strings.Join(lines, "\n")
}

// regionMap is no single value: only a file can hold it.
func regionMap(p *[]Region) (value, func(*yaml.Node) error) {
	none := func(string) error { return errors.New("must be a map of regions, each with peers and weight") }
	v := value{
		kind:  "map",
		set:   none,
		get:   func() string { return regionsText(*p) },
		datum: func() datum { return regionsDatum(*p) },
	}
	read := func(n *yaml.Node) error {
		if n.Kind != yaml.MappingNode {
			return none("")
		}
		r := regionReader{lines: make(map[string]int)}
		for i := 0; i+1 < len(n.Content); i += 2 {
			r.region(n.Content[i], n.Content[i+1])
		}
		if len(r.faults) > 0 {
			return r.faults
		}
		*p = r.regions
		return nil
	}
	return v, read
}

// regionReader takes the regions of a file over.
type regionReader struct {
	regions []Region
	lines   map[string]int // of each name
	faults  nodeFaults
}

func (r *regionReader) region(key, n *yaml.Node) {
	name, err := scalar(key)
	if err == nil {
		err = checkName(name)
	}
	if err != nil {
		r.faults.add(key, "", "%s", err)
		return
	}
	if line, twice := r.lines[name]; twice {
		r.faults.add(key, "."+name, "stands in line %d already", line)
		return
	}
	r.lines[name] = key.Line
	region := Region{Name: name}
	switch {
	case absent(n): // a region that nothing is said of yet
	case n.Kind != yaml.MappingNode:
		r.faults.add(n, "."+name, "must be a map of peers and weight")
	default:
		r.body(&region, n)
	}
	r.regions = append(r.regions, region)
}

func (r *regionReader) body(region *Region, n *yaml.Node) {
	lines := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		inside := "." + region.Name + "." + key.Value
		if line, twice := lines[key.Value]; twice {
			r.faults.add(key, inside, "stands in line %d already", line)
			continue
		}
		lines[key.Value] = key.Line
		switch key.Value {
		case "peers":
			r.peers(region, inside, value)
		case "weight":
			r.weight(region, inside, value)
		case "added":
			text, err := scalar(value)
			if err == nil {
				region.Added, err = strconv.ParseBool(text)
			}
			if err != nil {
				r.faults.add(value, inside, "must be true or false")
			}
		default:
			r.faults.add(key, "."+region.Name, "unknown field %q; a region has peers, weight and added", key.Value)
		}
	}
}

func (r *regionReader) peers(region *Region, inside string, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		r.faults.add(n, inside, "must be a list of host:port such as [10.0.0.1:7070, 10.0.0.2:7070]")
		return
	}
	list, faults := texts(n)
	for _, f := range faults {
		f.inside = inside
		r.faults = append(r.faults, f)
	}
	region.Peers = list
}

func (r *regionReader) weight(region *Region, inside string, n *yaml.Node) {
	text, err := scalar(n)
	if err == nil {
		err = ratio(&region.Weight).set(text)
	}
	switch {
	case err != nil:
		r.faults.add(n, inside, "%s", err)
	case region.Weight == 0 || region.Weight > 100*rules.Percent:
		r.faults.add(n, inside, "%s is out of range: above 0%% and at most 100%%", excerpt(text))
	}
}

// regionsText is the value in a line, for messages.
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
			b.Weight = percent(r.Weight)
		}
		text, err := json.Marshal(b)
		if err != nil {
			return err.Error()
		}
		out[i] = strconv.Quote(r.Name) + ":" + string(text)
	}
	return "{" + strings.Join(out, ",") + "}"
}

func regionsDatum(regions []Region) datum {
	pairs := make([]pair, len(regions))
	for i, r := range regions {
		var body []pair
		if len(r.Peers) > 0 {
			body = append(body, pair{key: "peers", datum: textsDatum(r.Peers)})
		}
		if r.Weight != 0 {
			body = append(body, pair{key: "weight", datum: textDatum(percent(r.Weight))})
		}
		if r.Added {
			body = append(body, pair{key: "added", datum: datum{text: "true", bare: true}})
		}
		pairs[i] = pair{key: r.Name, datum: mapDatum(body...)}
	}
	return mapDatum(pairs...)
}

// percent writes a share as people do: 34%.
func percent(p rules.PPM) string {
	return strconv.FormatFloat(float64(p)/float64(rules.Percent), 'f', -1, 64) + "%"
}
