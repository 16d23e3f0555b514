// Package upstream lists the environment variables of envoyproxy/ratelimit, and
// their effect in rld. Package config applies them by this list, and rld import
// explains them by it.
package upstream

import (
	"maps"
	"slices"
	"strings"
)

// Kind is the effect of a variable.
type Kind uint8

// The kinds.
const (
	// Same has the effect of Variable.Setting, whose values are the same.
	Same Kind = iota
	// Derived has an effect on Variable.Setting that package config computes
	// from the value of this variable, and of others. Setting is "" where no
	// setting shows it.
	Derived
	// Selector has the effect to select others. It sets Setting where these do
	// not.
	Selector
	// Unneeded has no effect: it controls a part that rld does not have, and
	// no answer to a caller depends on it.
	Unneeded
	// Replaced has no effect where it is on, and an operator misses something.
	// Variable.Text names what takes its place.
	Replaced
)

// Group is a part of the reference whose variables act together.
type Group uint8

// The groups. Same variables of another group than Always have an effect only
// where another variable selects it.
const (
	Always     Group = iota
	ServerTLS        // with GRPC_SERVER_USE_TLS=true
	XDS              // with CONFIG_TYPE=GRPC_XDS_SOTW
	XDSTLS           // of these, with CONFIG_GRPC_XDS_SERVER_USE_TLS=true
	Files            // with CONFIG_TYPE=FILE, the default
	Store            // Redis or memcached
	Prometheus       // with USE_PROMETHEUS=true
	Stats            // statsd
	Tracing
)

// Selector returns the NAME=VALUE without which the variables of a group have
// no effect, "" for none.
func (g Group) Selector() string {
	return map[Group]string{
		ServerTLS: "GRPC_SERVER_USE_TLS=true", XDS: "CONFIG_TYPE=GRPC_XDS_SOTW",
		XDSTLS: "CONFIG_GRPC_XDS_SERVER_USE_TLS=true", Files: "CONFIG_TYPE=FILE", Prometheus: "USE_PROMETHEUS=true",
	}[g]
}

// Variable is an environment variable of envoyproxy/ratelimit.
type Variable struct {
	Name    string
	Kind    Kind
	Group   Group
	Setting string // of rld, "" for none
	// Text describes the effect in one sentence without its full stop. It is
	// "" for a variable that is explained by its setting.
	Text string
}

// Variables returns all variables, in the order in which config applies those
// of one group: the last one of a setting wins.
func Variables() []Variable { return slices.Clone(table) }

// Find returns the variable of a name.
func Find(name string) (v Variable, ok bool) {
	i := slices.IndexFunc(table, func(v Variable) bool { return v.Name == name })
	if i < 0 {
		return Variable{}, false
	}
	return table[i], true
}

// Settings returns the variables of a group that have the same values as a
// setting.
func Settings(g Group) []Variable {
	return slices.DeleteFunc(Variables(), func(v Variable) bool { return v.Group != g || v.Kind != Same })
}

// storePrefixes begin the names of variables of the store.
var storePrefixes = []string{
	"REDIS_", "MEMCACHE_", "BACKEND_TYPE", "CACHE_KEY_PREFIX", "EXPIRATION_JITTER_MAX_SECONDS",
	"LOCAL_CACHE_SIZE_IN_BYTES",
}

// OfStore reports whether a variable is one of the store, which rld does not
// have. It need not be in the list.
func OfStore(name string) bool {
	return slices.ContainsFunc(storePrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// Only returns the variables of an environment that are in the list. No other
// one can have an effect as a variable of envoyproxy/ratelimit.
func Only(env map[string]string) map[string]string {
	out := maps.Clone(env)
	maps.DeleteFunc(out, func(name, _ string) bool {
		_, ok := Find(name)
		return !ok
	})
	return out
}
