package daemon

import (
	"github.com/georld/rld/daemon/overage"
	"github.com/georld/rld/node"
	"github.com/georld/rld/server/admin/api"
)

// topSpan is the time that rates of keys are of, in seconds.
const topSpan = 1

// Hottest returns the keys that are asked for and refused most, those of one shard
// after those of another.
func (e *Engine) Hottest() []node.HotKey {
	var all []node.HotKey
	at := e.Now()
	for _, s := range e.shards {
		s.lock()
		all = append(all, s.node.Hottest(at)...)
		s.mu.Unlock()
	}
	return all
}

// top answers /v1/top.
func (d *daemon) top(q api.TopQuery) api.TopAnswer {
	out := api.TopAnswer{
		Self: d.self(), SpanSeconds: topSpan, HotPerSecond: uint64(d.cfg.HotKey.Threshold), Reveals: true,
	}
	keys := d.engine.Hottest()
	known := d.texts.of(keys)
	for i := range keys {
		k := &keys[i]
		is := known[k.Key]
		row := api.TopKey{
			Key: keyText(k.Key), HitsPerSecond: float64(k.Asked), DeniedPerSecond: float64(k.Denied), Domain: is.domain,
			Hot: out.HotPerSecond > 0 && k.Asked >= out.HotPerSecond,
		}
		if q.Reveal {
			row.Text = is.text
		}
		rule := k.Rule
		if rule == nil { // nothing of it was ever charged
			rule = is.rule
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
