package admin

import "github.com/georld/rld/server/auth"

// reveal is the route of the texts of keys: GET /v1/top?reveal=true.
const reveal = "GET /v1/top?reveal=true"

// roles has every route of the admin listener, and the least role that it
// needs. A route that is not here needs auth.Admin.
var roles = map[string]auth.Role{
	"GET /{$}":          auth.View,
	"GET /metrics":      auth.View,
	"GET /healthz":      auth.View,
	"GET /readyz":       auth.View,
	"GET /rlconfig":     auth.View,
	"GET /members":      auth.View,
	"GET /netcheck":     auth.View,
	"GET /v1/budget":    auth.View,
	"GET /v1/explain":   auth.View,
	"POST /v1/explain":  auth.View, // charges nothing
	"GET /v1/status":    auth.View,
	"GET /v1/top":       auth.View,
	reveal:              auth.Operate,
	"GET /v1/strict":    auth.View,
	"GET /debug/pprof/": auth.View, // only with admin.pprof

	"GET /debug/pprof/cmdline": auth.View,
	"GET /debug/pprof/profile": auth.View,
	"GET /debug/pprof/trace":   auth.View,
	"GET /debug/pprof/symbol":  auth.View,
	"POST /debug/pprof/symbol": auth.View,

	"GET /v1/cluster":         auth.View,
	"GET /v1/cluster/history": auth.View,
	"GET /v1/cluster/command": auth.View,
	"GET /v1/cluster/backup":  auth.View, // has no key of a caller

	"POST /v1/cluster/init":            auth.Admin,
	"POST /v1/cluster/recover":         auth.Admin,
	"POST /v1/cluster/region-resume":   auth.Admin,
	"POST /v1/cluster/region-add":      auth.Admin,
	"POST /v1/cluster/region-weight":   auth.Admin,
	"POST /v1/cluster/region-drain":    auth.Operate,
	"POST /v1/cluster/region-remove":   auth.Admin,
	"POST /v1/cluster/daemon-remove":   auth.Admin,
	"POST /v1/cluster/daemon-revoke":   auth.Admin,
	"POST /v1/cluster/daemon-unrevoke": auth.Admin,
	"POST /v1/cluster/format-hold":     auth.Admin,
	"POST /v1/cluster/format-unhold":   auth.Admin,
	"POST /v1/cluster/strict-recover":  auth.Admin,

	"GET /v1/limits":         auth.View,
	"GET /v1/limits/history": auth.View,
	"GET /v1/limits/command": auth.View,

	"POST /v1/limits/apply":    auth.Operate,
	"POST /v1/limits/rollback": auth.Operate,
	"POST /v1/limits/adopt":    auth.Operate,
	"POST /v1/limits/set":      auth.Operate,
	"POST /v1/limits/unset":    auth.Operate,
	"POST /v1/limits/block":    auth.Operate,
	"POST /v1/limits/unblock":  auth.Operate,
	"POST /v1/limits/reset":    auth.Operate,
}

// roleFor returns the role that a route needs.
func roleFor(route string) auth.Role {
	if r, ok := roles[route]; ok {
		return r
	}
	return auth.Admin
}
