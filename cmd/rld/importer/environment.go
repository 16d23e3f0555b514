package importer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/georld/rld/config"
	"github.com/georld/rld/config/upstream"
	"github.com/georld/rld/internal/suggest"
)

// Variable is a variable of the environment, and its effect in rld.
type Variable struct {
	Name string `json:"name"`
	Line int    `json:"line"`
	// Effect is one of the words below.
	Effect   string    `json:"effect"`
	Settings []Setting `json:"settings,omitempty"` // that it sets
	Text     string    `json:"text,omitempty"`
}

// Setting is a setting of rld and its value.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// The effects of a variable.
const (
	effectSetting = "setting" // it has the same effect in rld
	effectNone    = "none"    // it has none, and none is needed
	effectReplace = "replace" // it has none, and the text names what to do instead
	effectRefused = "refused" // a daemon does not start with it
	effectUnknown = "unknown" // neither rld nor the reference reads it
)

// environment lists the variables of a file, and returns the settings of a
// daemon with them: without variables that are refused. They are nil for faults
// that no variable has.
func (r *Report) environment(file string, vars []given) *config.Loaded {
	refusals := make(map[string]string)
	loaded, others := load(vars, refusals)
	for _, text := range others {
		r.Stops = append(r.Stops, "settings: "+text)
	}
	for _, v := range vars {
		if config.ServiceLink(v.name, v.value) {
			continue
		}
		out := Variable{Name: v.name, Line: v.line}
		if text, ok := refusals[v.name]; ok {
			out.Effect, out.Text = effectRefused, text
			r.Stops = append(r.Stops, fmt.Sprintf("%s:%d: %s: %s", file, v.line, v.name, text))
		} else {
			out.explain(&v, loaded)
		}
		r.Environment = append(r.Environment, out)
	}
	return loaded
}

// load returns the settings of a daemon with the variables. It adds variables
// that are refused to refusals, with the reason, and leaves them out. It
// returns the faults of no variable, and nil settings for these.
func load(vars []given, refusals map[string]string) (loaded *config.Loaded, others []string) {
	for {
		var environ []string
		for _, v := range vars {
			if _, bad := refusals[v.name]; !bad && v.elsewhere == "" && v.name != "RLD_CONFIG" {
				environ = append(environ, v.name+"="+v.value)
			}
		}
		loaded, err := config.Load(config.Sources{Environ: environ, Upstream: true})
		if err == nil {
			return loaded, nil
		}
		var faults config.Faults
		if !errors.As(err, &faults) {
			return nil, []string{err.Error()}
		}
		others = nil
		before := len(refusals)
		for _, f := range faults {
			names, ok := strings.CutPrefix(string(f.Origin), "env ")
			if !ok {
				others = append(others, f.Error())
				continue
			}
			for _, name := range strings.Split(names, ", ") {
				if _, twice := refusals[name]; !twice {
					refusals[name] = f.Problem
				}
			}
		}
		if len(refusals) == before {
			return nil, others
		}
	}
}

// explain sets the effect of a variable that is not refused. loaded may be nil.
func (v *Variable) explain(g *given, loaded *config.Loaded) {
	known, ok := upstream.Find(v.Name)
	if loaded != nil {
		for _, s := range loaded.Settings() {
			if names, found := strings.CutPrefix(string(loaded.Origin(s.Name)), "env "); found && slices.Contains(strings.Split(names, ", "), v.Name) {
				v.Settings = append(v.Settings, Setting{Name: s.Name, Value: s.Value})
			}
		}
	}
	v.Text = known.Text
	switch {
	case len(v.Settings) > 0:
		v.Effect = effectSetting
	case !ok:
		v.unknown(g)
	case known.Kind == upstream.Unneeded:
		v.Effect = effectNone
	case g.elsewhere != "":
		v.Effect, v.Text = effectSetting, "its value is from "+g.elsewhere+" and was not checked"
		if known.Setting != "" {
			v.Text = "sets " + known.Setting + ", but " + v.Text
		}
	case g.value == "":
		v.Effect, v.Text = effectNone, "an empty value is as none"
	case known.Kind == upstream.Replaced:
		if v.Effect = effectReplace; isOff(g.value) {
			v.Effect, v.Text = effectNone, "it is off"
		}
	case known.Kind == upstream.Selector:
		if v.Effect = effectSetting; isOff(g.value) {
			v.Effect, v.Text = effectNone, "it is off"
		}
	case v.Name == chargeVariable:
		v.Effect, v.Text = effectReplace, "denied hits are not charged, and the reference charges them: RLD_CHARGE_DENIED=true does it, too"
	default:
		v.unselected(&known, g, loaded)
	}
}

// chargeVariable is the variable whose default differs.
const chargeVariable = "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT"

// stopsCharging reports whether the environment states whether denied hits are
// charged.
func (r *Report) stopsCharging() bool {
	return slices.ContainsFunc(r.Environment, func(v Variable) bool { return v.Name == chargeVariable })
}

// unselected explains a variable with an effect that sets nothing here.
func (v *Variable) unselected(known *upstream.Variable, g *given, loaded *config.Loaded) {
	xds := loaded != nil && loaded.Config.Limits.XDS.On()
	selector := known.Group.Selector()
	switch {
	case known.Group == upstream.Files && xds:
		v.Effect, v.Text = effectNone, "limits come from the xDS server"
	case known.Group == upstream.XDS && !xds, known.Group == upstream.ServerTLS, known.Group == upstream.XDSTLS,
		known.Group == upstream.Prometheus && known.Setting != "" && (loaded == nil || loaded.Config.Probe.Addr == ""):
		v.Effect, v.Text = effectNone, "it has an effect only with "+selector
	case known.Setting != "" && loaded != nil && loaded.Origin(known.Setting) != config.OriginDefault:
		v.Effect, v.Text = effectNone, fmt.Sprintf("%s is set by %s", known.Setting, strings.TrimPrefix(string(loaded.Origin(known.Setting)), "env "))
	case isOff(g.value):
		v.Effect, v.Text = effectNone, "the default of rld is the same"
	case known.Group == upstream.Files:
		v.Effect, v.Text = effectNone, "it has an effect only where RUNTIME_ROOT, or its default, names the limits"
	case known.Setting != "":
		v.Effect, v.Text = effectNone, known.Setting+" has its default"
	default:
		v.Effect = effectSetting
	}
}

// unknown explains a variable of neither program.
func (v *Variable) unknown(g *given) {
	v.Effect, v.Text = effectUnknown, "neither rld nor the reference reads it"
	if g.elsewhere != "" && strings.HasPrefix(v.Name, "RLD_") {
		v.Effect, v.Text = effectSetting, "its value is from "+g.elsewhere+" and was not checked"
		return
	}
	var names []string
	for _, u := range upstream.Variables() {
		names = append(names, u.Name)
	}
	for _, f := range config.Fields() {
		if f.Env != "" {
			names = append(names, f.Env)
		}
	}
	switch {
	case slices.Contains(names, v.Name):
		v.Effect, v.Text = effectNone, "an empty value is as none"
	case upstream.OfStore(v.Name):
		v.Effect, v.Text = effectNone, "rld needs no store"
	case v.Name == "RLD_CONFIG":
		v.Effect, v.Text = effectSetting, "its file was not read: rld config check does that"
	default:
		if hint := suggest.Hint(v.Name, names, ""); hint != "" {
			v.Text += "; " + hint
		}
	}
}

// isOff reports whether a value switches something off.
func isOff(value string) bool {
	on, err := strconv.ParseBool(value)
	return err == nil && !on
}
