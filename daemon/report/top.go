package report

import (
	"github.com/georld/rld/daemon/overage"
	"github.com/georld/rld/server/admin/api"
)

// topSpan is the interval of the rates of keys, in seconds.
const topSpan = 1

// Top answers /v1/top with all known hot keys, in any order.
func (r *Report) Top(q api.TopQuery) api.TopAnswer {
	out := api.TopAnswer{Self: r.self(), SpanSeconds: topSpan, HotPerSecond: uint64(r.HotThreshold), Reveals: true}
	keys := r.Engine.Hottest()
	names := r.names.of(keys)
	for i := range keys {
		k := &keys[i]
		known := names[k.Key]
		row := api.TopKey{
			Key: keyText(r.Engine.OriginalKey(k.Key)), HitsPerSecond: float64(k.Asked), DeniedPerSecond: float64(k.Denied), Domain: known.domain,
			Hot: out.HotPerSecond > 0 && k.Asked >= out.HotPerSecond,
		}
		if q.Reveal {
			row.Text = known.text
		}
		rule := k.Rule
		if rule == nil { // no hit was ever charged
			rule = known.rule
		}
		if rule != nil {
			use := overage.UseOf(rule)
			row.Domain, row.Rule, row.Name = use.Domain, use.Rule, use.Name
		}
		if k.Capacity > 0 {
			row.Share = new(float64(k.Used) / float64(k.Capacity))
		}
		out.Keys = append(out.Keys, row)
	}
	return out
}
