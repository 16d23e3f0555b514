package files

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run returns the output of a program.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// TestSpring reads the settings, parses the filter, and has the client of the
// filter ask a real rld. The filter itself needs Spring to compile.
func TestSpring(t *testing.T) {
	var conf struct {
		Server struct {
			Address string `json:"address"`
			Port    int    `json:"port"`
		} `json:"server"`
		RLD struct {
			URL     string `json:"url"`
			Timeout string `json:"timeout"`
		} `json:"rld"`
		Spring struct {
			Cloud struct {
				Gateway struct {
					Server struct {
						Webflux struct {
							Routes []struct {
								ID         string   `json:"id"`
								URI        string   `json:"uri"`
								Predicates []string `json:"predicates"`
							} `json:"routes"`
						} `json:"webflux"`
					} `json:"server"`
				} `json:"gateway"`
			} `json:"cloud"`
		} `json:"spring"`
	}
	readYAML(t, "application.yml", example(t, "spring", "application.yml"), &conf)
	const url = "http://127.0.0.1:8080/v1/forward-auth/edge"
	if conf.RLD.URL != url || conf.RLD.Timeout != "200ms" || len(conf.Spring.Cloud.Gateway.Server.Webflux.Routes) != 1 {
		t.Errorf("%+v", conf)
	}
	filter := string(example(t, "spring", "RateLimitFilter.java"))
	for _, setting := range []string{"${rld.url}", "${rld.timeout}"} {
		if !strings.Contains(filter, setting) {
			t.Errorf("the filter does not read %s", setting)
		}
	}
	if _, err := exec.LookPath("javac"); err != nil {
		t.Skip("LEFT OUT: the Java code is not compiled, since there is no javac here: install default-jdk-headless")
	}
	dir := t.TempDir()
	folder := filepath.Join(root, "examples", "gateways", "spring")
	run(t, "javac", "-Werror", "-Xlint:all", "-d", dir, filepath.Join(folder, "RldClient.java"), filepath.Join("testdata", "Ask.java"))
	run(t, "javac", "-XDshould-stop.ifNoError=PARSE", "-d", dir, filepath.Join(folder, "RateLimitFilter.java"))

	untilTomorrow(t)
	d := startRLD(t, "spring")
	ask := func(addr, target string, keys ...string) string {
		at := "http://" + addr + strings.TrimPrefix(url, "http://127.0.0.1:8080")
		return run(t, "java", append([]string{"-cp", dir, "com.example.gateway.Ask", at, target}, keys...)...)
	}
	limited := strings.Repeat("200\n", 10) + strings.Repeat("429\n", 3)
	for _, keys := range [][]string{{"k1"}, {"k2&hits=0"}, nil} {
		if got := ask(d.http, "/v1/./reports/march?hits=0", keys...); got != limited {
			t.Errorf("%q: %q", keys, got)
		}
	}
	if got := ask(d.http, "/v1/reports/march", "k3", "k4"); got != strings.Repeat("429\n", 13) {
		t.Errorf("two keys: %q", got)
	}
	if got := ask(d.http, "/v1/reports/march", "k\x01"); got != strings.Repeat("failed\n", 13) {
		t.Errorf("a control character: %q", got)
	}
	if got := ask(freeAddress(t), "/"); got != strings.Repeat("failed\n", 13) {
		t.Errorf("without rld: %q", got)
	}
}
