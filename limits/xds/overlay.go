package xds

import (
	"cmp"
	"slices"
	"strings"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/limits"
)

// Overlay gives limits of an xDS server the fields that its messages do not
// have, such as overage_budget and consistency. It is immutable; nil is one
// without fields.
type Overlay struct {
	rules []*overlaid
}

// overlaid are the fields of one rule.
type overlaid struct {
	domain, path string
	at           yamlpos.Position
	fields       []overlayField
}

// overlayField is a field of a limit, with its value as YAML.
type overlayField struct {
	name, value string
	at          yamlpos.Position
}

// MaxOverlayBytes bounds the file of an overlay.
const MaxOverlayBytes = limits.MaxFileBytes

// ParseOverlay reads an overlay: a map of domains, each a map from paths of
// rules, as "tier=premium > user_id", to fields of their limits. The error
// lists every fault with its position.
func ParseOverlay(name string, data []byte) (*Overlay, error) {
	var c yamlpos.Collector
	o := &Overlay{}
	root := c.Parse(name, data, yamlpos.Options{MaxBytes: MaxOverlayBytes})
	if root != nil && !root.IsNull() {
		c.Each(root, "an overlay", func(domain string, p yamlpos.Pair) bool {
			return c.Each(p.Value, "a domain of an overlay", func(path string, p yamlpos.Pair) bool {
				return o.read(&c, domain, path, p)
			})
		})
	}
	if err := c.List().Err(); err != nil {
		return nil, err
	}
	slices.SortFunc(o.rules, func(a, b *overlaid) int { return compare(a, b.domain, b.path) })
	return o, nil
}

// read reads the fields of a rule.
func (o *Overlay) read(c *yamlpos.Collector, domain, path string, p yamlpos.Pair) bool {
	r := &overlaid{domain: domain, path: path, at: p.Key.Pos}
	known := limits.OwnFields()
	good := c.Each(p.Value, "a rule of an overlay", func(field string, p yamlpos.Pair) bool {
		if !slices.Contains(known, field) {
			return c.Errorf(p.Key.Pos, suggest.Hint(field, known, "an overlay has "+suggest.List(known)+"; the server gives the other fields"),
				"%s is no field of an overlay", yamlpos.Quote(field))
		}
		r.fields = append(r.fields, overlayField{field, flow(p.Value), p.Value.Pos})
		return true
	})
	o.rules = append(o.rules, r)
	return good
}

// flow returns a value as YAML on one line.
func flow(n *yamlpos.Node) string {
	var parts []string
	switch n.Kind {
	case yamlpos.Map:
		for _, p := range n.Pairs {
			parts = append(parts, flow(p.Key)+": "+flow(p.Value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case yamlpos.List:
		for _, item := range n.Items {
			parts = append(parts, flow(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	if v, ok := n.Resolve(); ok && !n.Quoted {
		if _, text := v.(string); !text {
			return n.Text // a boolean, a number or nothing
		}
	}
	return quote(n.Text)
}

// of returns the fields of a rule, nil for none.
func (o *Overlay) of(domain, path string) *overlaid {
	if o == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(o.rules, domain, func(r *overlaid, domain string) int { return compare(r, domain, path) })
	if !ok {
		return nil
	}
	return o.rules[i]
}

func compare(r *overlaid, domain, path string) int {
	return cmp.Or(cmp.Compare(r.domain, domain), cmp.Compare(r.path, path))
}

// unused describes the rules that no limit of the resources has.
func (o *Overlay) unused(all []resource) []string {
	if o == nil {
		return nil
	}
	used := make(map[*overlaid]bool)
	for _, one := range all {
		for _, r := range one.file.used {
			used[r] = true
		}
	}
	var out []string
	for _, r := range o.rules {
		if !used[r] {
			out = append(out, r.at.String()+": the server has no limit "+yamlpos.Quote(r.path)+" in the domain "+yamlpos.Quote(r.domain))
		}
	}
	return out
}
