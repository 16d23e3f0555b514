package admin

import "github.com/georld/rld/server/auth"

// right is what a route needs.
type right struct {
	role auth.Role
	// signed is the size of the longest body that a sender with the secret of
	// the cluster may sign instead (api.Sign); 0 takes no signature.
	signed int64
}

// reveal is the right to see the texts of keys: GET /v1/top?reveal=true.
const reveal = "GET /v1/top?reveal=true"

// rights has every route of the admin listener. A route that is not here is for
// auth.Admin.
var rights = map[string]right{
	"GET /{$}":          {role: auth.View},
	"GET /metrics":      {role: auth.View},
	"GET /healthz":      {role: auth.View},
	"GET /readyz":       {role: auth.View},
	"GET /rlconfig":     {role: auth.View},
	"GET /members":      {role: auth.View},
	"GET /netcheck":     {role: auth.View},
	"GET /v1/budget":    {role: auth.View},
	"GET /v1/explain":   {role: auth.View},
	"POST /v1/explain":  {role: auth.View}, // charges nothing
	"GET /v1/status":    {role: auth.View},
	"GET /v1/top":       {role: auth.View},
	reveal:              {role: auth.Operate},
	"GET /v1/strict":    {role: auth.View},
	"GET /debug/pprof/": {role: auth.View}, // only with admin.pprof

	"GET /debug/pprof/cmdline": {role: auth.View},
	"GET /debug/pprof/profile": {role: auth.View},
	"GET /debug/pprof/trace":   {role: auth.View},
	"GET /debug/pprof/symbol":  {role: auth.View},
	"POST /debug/pprof/symbol": {role: auth.View},

	"GET /v1/cluster":         {role: auth.View},
	"GET /v1/cluster/history": {role: auth.View},
	"GET /v1/cluster/command": {role: auth.View},
	"GET /v1/cluster/backup":  {role: auth.View}, // has no key of a caller

	"POST /v1/cluster/init":            {role: auth.Admin, signed: maxCommandBytes},
	"POST /v1/cluster/recover":         {role: auth.Admin},
	"POST /v1/cluster/region-resume":   {role: auth.Admin},
	"POST /v1/cluster/region-add":      {role: auth.Admin, signed: maxCommandBytes},
	"POST /v1/cluster/region-weight":   {role: auth.Admin, signed: maxCommandBytes},
	"POST /v1/cluster/region-drain":    {role: auth.Operate, signed: maxCommandBytes},
	"POST /v1/cluster/region-remove":   {role: auth.Admin, signed: maxCommandBytes},
	"POST /v1/cluster/daemon-remove":   {role: auth.Admin, signed: maxCommandBytes},
	"POST /v1/cluster/daemon-revoke":   {role: auth.Admin, signed: maxCommandBytes},
	"POST /v1/cluster/daemon-unrevoke": {role: auth.Admin, signed: maxCommandBytes},
	"POST /v1/cluster/format-hold":     {role: auth.Admin, signed: maxCommandBytes},
	"POST /v1/cluster/format-unhold":   {role: auth.Admin, signed: maxCommandBytes},
	"POST /v1/cluster/strict-recover":  {role: auth.Admin, signed: maxCommandBytes},

	"GET /v1/limits":         {role: auth.View},
	"GET /v1/limits/history": {role: auth.View},
	"GET /v1/limits/command": {role: auth.View},

	"POST /v1/limits/apply":    {role: auth.Operate, signed: maxApplyBytes},
	"POST /v1/limits/rollback": {role: auth.Operate, signed: maxOverrideBytes},
	"POST /v1/limits/adopt":    {role: auth.Operate, signed: maxOverrideBytes},
	"POST /v1/limits/set":      {role: auth.Operate, signed: maxOverrideBytes},
	"POST /v1/limits/unset":    {role: auth.Operate, signed: maxOverrideBytes},
	"POST /v1/limits/block":    {role: auth.Operate, signed: maxOverrideBytes},
	"POST /v1/limits/unblock":  {role: auth.Operate, signed: maxOverrideBytes},
	"POST /v1/limits/reset":    {role: auth.Operate, signed: maxOverrideBytes},
}

// rightOf returns what a route needs.
func rightOf(route string) right {
	if r, ok := rights[route]; ok {
		return r
	}
	return right{role: auth.Admin}
}
