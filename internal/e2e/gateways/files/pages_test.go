package files

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mappings is the setting gateways, as far as the tests need it.
type mappings struct {
	Gateways map[string]struct {
		Target string `json:"target"`
	} `json:"gateways"`
}

// TestOtherPaths asks a real rld with the files of each gateway about paths
// that have no limit of their own: the limit of the address alone applies, as
// the pages state.
func TestOtherPaths(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "examples", "gateways", "*", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, page := range pages {
		folder := filepath.Base(filepath.Dir(page))
		var m mappings
		readLoose(t, example(t, folder, "rld.yaml"), &m)
		if len(m.Gateways) == 0 {
			continue
		}
		count++
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "| as above, by the limit of the address alone |") || strings.Contains(string(text), "without a rule") {
			t.Errorf("%s does not state what other paths get", page)
		}
		rld := startRLD(t, folder).http
		for name, one := range m.Gateways {
			for _, path := range []string{"/other", "/v2/x", "/", "/login/x"} {
				checkOther(t, folder, "http://"+rld+"/v1/forward-auth/"+name, one.Target, path)
			}
		}
	}
	if count < 9 {
		t.Errorf("only %d folders have mappings", count)
	}
}

// checkOther asks about a path, in the way that the mapping reads it.
func checkOther(t *testing.T, folder, url, target, path string) {
	t.Helper()
	header := http.Header{"X-Api-Key": {"k1"}, "X-Forwarded-For": {"192.0.2.1"}, "X-Client-Address": {"192.0.2.1"}}
	if target == "path" {
		url += path
	} else {
		header.Set("X-Forwarded-Uri", path)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	_, _ = io.Copy(io.Discard, a.Body) // the headers are what counts
	policy := a.Header.Get("RateLimit-Policy")
	if a.StatusCode != http.StatusOK || policy != `"ip";q=5000;w=3600` && policy != `"remote_address";q=5000;w=3600` {
		t.Errorf("%s: %s: status %d, policy %s; want the limit of the address alone", folder, path, a.StatusCode, policy)
	}
}
