package admin

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/georld/rld/server/auth"
)

// TestEveryCommandHasARole holds that each route is in the table of roles, and
// nothing else, and that no command is for those who may only view.
func TestEveryCommandHasARole(t *testing.T) {
	routes := newGate(&Options{Metrics: http.NotFoundHandler(), Pprof: true}).routes
	slices.Sort(routes)
	table := maps.Clone(roles)
	delete(table, reveal) // a parameter of a route
	if want := slices.Sorted(maps.Keys(table)); !slices.Equal(routes, want) {
		t.Errorf("routes %q\nroles %q", routes, want)
	}
	views := []string{"POST /v1/explain", "POST /debug/pprof/symbol"} // change nothing
	for route, r := range roles {
		command := strings.HasPrefix(route, "POST ") && !slices.Contains(views, route) || route == reveal
		if r == auth.None || command != (r > auth.View) {
			t.Errorf("%s is for the role %s", route, r)
		}
	}
	if r := roleFor("POST /v1/new"); r != auth.Admin {
		t.Errorf("a route without a row is for the role %s", r)
	}
}
