package docs

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/connlimit"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/telemetry"
)

// fill sets every field that v can reach to something, so that each metric has
// a value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	}
}

func filled[T any]() T {
	var v T
	fill(reflect.ValueOf(&v).Elem())
	return v
}

// source is a daemon of which everything has a value.
type source struct{ set *rules.Set }

func (s source) Tallies(yield func(domain, rule string, t quota.Tally)) {
	yield("d", "r", filled[quota.Tally]())
}
func (s source) Unmatched() (known, unknown uint64)   { return 1, 1 }
func (s source) Stats() node.Stats                    { return filled[node.Stats]() }
func (s source) Rules() *rules.Set                    { return s.set }
func (s source) Connections() []connlimit.Stats       { return filled[[]connlimit.Stats]() }
func (s source) CallerStats() telemetry.CallerStats   { return filled[telemetry.CallerStats]() }
func (s source) ClusterStats() telemetry.ClusterStats { return filled[telemetry.ClusterStats]() }
func (s source) BudgetStats() telemetry.BudgetStats   { return filled[telemetry.BudgetStats]() }
func (s source) ControlStats() telemetry.ControlStats { return filled[telemetry.ControlStats]() }
func (s source) XDSStats() telemetry.XDSStats         { return filled[telemetry.XDSStats]() }
func (s source) StrictStats() telemetry.StrictStats   { return filled[telemetry.StrictStats]() }

// collected notes the names that are described.
type collected struct {
	prometheus.Registerer
	names map[string]bool
}

var descName = regexp.MustCompile(`fqName: "(rld_[a-z_]+)"`)

// Register implements prometheus.Registerer.
func (c collected) Register(x prometheus.Collector) error {
	descs := make(chan *prometheus.Desc)
	go func() {
		x.Describe(descs)
		close(descs)
	}()
	for d := range descs {
		if found := descName.FindStringSubmatch(d.String()); found != nil {
			c.names[found[1]] = true
		}
	}
	return c.Registerer.Register(x)
}

// family is a metric as a scrape shows it.
type family struct {
	kind, help string
	by         []string
	values     [][2]string // label and value, of all series
}

// exported returns the metrics of a daemon whose telemetry is made of o,
// without those of Go and the process.
func exported(t *testing.T, o telemetry.Options) map[string]*family {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	c := collected{reg, make(map[string]bool)}
	m, err := telemetry.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	m.Waited(1)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := familiesOf(families, "rld_")
	for name := range c.names {
		if out[name] == nil {
			t.Errorf("%s is described and has no value here", name)
		}
	}
	return out
}

// familiesOf returns the families whose names begin with a prefix.
func familiesOf(families []*dto.MetricFamily, prefix string) map[string]*family {
	out := make(map[string]*family)
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), prefix) {
			continue
		}
		x := &family{kind: strings.ToLower(f.GetType().String()), help: f.GetHelp()}
		for _, l := range f.GetMetric()[0].GetLabel() {
			x.by = append(x.by, "`"+l.GetName()+"`")
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				x.values = append(x.values, [2]string{l.GetName(), l.GetValue()})
			}
		}
		out[f.GetName()] = x
	}
	return out
}

// TestMetrics holds docs/metrics.md to what daemons export.
func TestMetrics(t *testing.T) {
	set, err := rules.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := source{set}
	all := exported(t, telemetry.Options{Engine: s, Callers: s.CallerStats, Connections: s.Connections, Cluster: s.ClusterStats, Budgets: s.BudgetStats, Strict: s.StrictStats, Control: s.ControlStats, XDS: s.XDSStats, Gateways: []string{"x"}, Version: "v0"})
	known := make(map[string]bool)
	parts := make(map[string]func() string)
	for _, group := range []struct {
		name string
		o    telemetry.Options
	}{
		{"metrics of every daemon", telemetry.Options{Engine: s, Callers: s.CallerStats, Connections: s.Connections, Gateways: []string{"x"}, Version: "v0"}},
		{"metrics of limits by discovery", telemetry.Options{Engine: s, XDS: s.XDSStats}},
		{"metrics of a cluster", telemetry.Options{Engine: s, Cluster: s.ClusterStats}},
		{"metrics of the control log", telemetry.Options{Engine: s, Control: s.ControlStats}},
		{"metrics of budgets", telemetry.Options{Engine: s, Budgets: s.BudgetStats}},
		{"metrics of strict keys", telemetry.Options{Engine: s, Strict: s.StrictStats}},
	} {
		var names []string
		for _, name := range slices.Sorted(maps.Keys(exported(t, group.o))) {
			if !known[name] {
				names = append(names, name)
				known[name] = true
			}
		}
		parts[group.name] = func() string { return metricTable(all, names) }
	}
	parts["kinds of replica events"] = func() string {
		var kinds []string
		for _, k := range gossip.EventKinds() {
			kinds = append(kinds, "`"+k.String()+"`")
		}
		return "Kinds of replica events: " + strings.Join(kinds, ", ") + ".\n"
	}
	parts["metrics of upstream"] = func() string {
		upstream := upstreamMetrics(t)
		return metricTable(upstream, slices.Sorted(maps.Keys(upstream)))
	}
	p := readPage(t, "docs/metrics.md")
	settle(t, p, generate(t, p, parts))
	checkLegend(t, p, all)
}

// upstreamMetrics returns the metrics that have names of upstream.
func upstreamMetrics(t *testing.T) map[string]*family {
	t.Helper()
	set, err := rules.NewSet([]rules.DomainNode{{Name: "d", Children: []rules.Node{{Key: "k", Limit: &rules.Limit{Unit: rules.Second, Multiplier: 1}}}}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := telemetry.New(prometheus.NewRegistry(), telemetry.Options{Engine: source{set}})
	if err != nil {
		t.Fatal(err)
	}
	families, err := m.Upstream(source{set}).Gather()
	if err != nil {
		t.Fatal(err)
	}
	return familiesOf(families, "ratelimit_")
}

func metricTable(all map[string]*family, names []string) string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, name := range names {
		f := all[name]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, f.kind, strings.Join(f.by, " "),
			strings.ReplaceAll(f.help, "|", `\|`))
	}
	return b.String()
}

// checkLegend fails for a label, and for a value of a label with a fixed set of
// values, that the page does not explain. Values x come from the fake daemon.
func checkLegend(t *testing.T, p page, all map[string]*family) {
	t.Helper()
	open := []string{"domain", "rule", "region", "owner", "hash", "version", "goversion", "kind"}
	_, legend, _ := strings.Cut(p.text, "## Labels")
	for name, f := range all {
		for _, l := range f.values {
			if !strings.Contains(legend, "| `"+l[0]+"` |") {
				t.Errorf("docs/metrics.md: the label %s of %s is not explained", l[0], name)
			}
			if l[1] != "x" && !slices.Contains(open, l[0]) && !strings.Contains(legend, "`"+l[1]+"`") {
				t.Errorf("docs/metrics.md: %s=%q of %s is not explained", l[0], l[1], name)
			}
		}
	}
	for name := range metricsNamed(p.text) {
		if all[name] == nil {
			t.Errorf("docs/metrics.md: there is no metric %s", name)
		}
	}
}

var metricName = regexp.MustCompile(`\brld_[a-z_]+`)

func metricsNamed(text string) map[string]bool {
	names := make(map[string]bool)
	for _, name := range metricName.FindAllString(text, -1) {
		names[name] = true
	}
	return names
}

// TestPagesNameMetrics holds every page to the metrics that there are.
func TestPagesNameMetrics(t *testing.T) {
	set, err := rules.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := source{set}
	all := exported(t, telemetry.Options{Engine: s, Callers: s.CallerStats, Connections: s.Connections, Cluster: s.ClusterStats, Budgets: s.BudgetStats, Strict: s.StrictStats, Control: s.ControlStats, XDS: s.XDSStats, Gateways: []string{"x"}})
	for _, p := range pages(t) {
		for name := range metricsNamed(p.text) {
			base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
			if all[name] == nil && all[base] == nil {
				t.Errorf("%s: there is no metric %s", p.name, name)
			}
		}
	}
}
