package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/georld/rld/internal/suggest"
)

const (
	envPrefix = "RLD_"
	// configVariable names the settings file, as --config does.
	configVariable = "RLD_CONFIG"
	// tokenVariable is that of the commands of operators.
	tokenVariable = "RLD_TOKEN_FILE"
)

// parseEnviron returns the variables that are not empty, without the links that
// Kubernetes adds to every container for the services around it: those of
// services named grpc, redis or rld would look like settings.
func parseEnviron(environ []string) map[string]string {
	env := make(map[string]string, len(environ))
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		if value != "" && !ServiceLink(name, value) {
			env[name] = value
		}
	}
	return env
}

var (
	linkName = regexp.MustCompile(
		`_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT_[0-9]+_(TCP|UDP|SCTP)(_.*)?$`)
	linkValue = regexp.MustCompile(`^(tcp|udp|sctp)://`)
)

// ServiceLink reports whether a variable is one that Kubernetes adds to each
// container for a service around it.
func ServiceLink(name, value string) bool {
	return linkName.MatchString(name) || strings.HasSuffix(name, "_PORT") && linkValue.MatchString(value)
}

// environ applies the RLD_* variables and warns of unknown ones.
func (l *loader) environ(env map[string]string) {
	byEnv := make(map[string]*field)
	known := []string{configVariable}
	for i := range l.table {
		if f := &l.table[i]; f.Flag != "" {
			byEnv[f.Env] = f
			known = append(known, f.Env)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if f := byEnv[name]; f != nil {
			l.set(f.Name, env[name], fromEnv(name))
			continue
		}
		if !strings.HasPrefix(name, envPrefix) || name == configVariable || name == tokenVariable {
			continue
		}
		if name == "RLD_INSECURE" {
			l.fault("", fromEnv(name), goneText("insecure", goneSettings["insecure"]))
			continue
		}
		warning := fmt.Sprintf("%s is set and is no setting of rld", name)
		if hint := suggest.Hint(name, known, ""); hint != "" {
			warning += "; " + hint
		}
		l.warnings = append(l.warnings, warning)
	}
}
