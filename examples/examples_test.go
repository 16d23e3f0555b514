package examples_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/georld/rld/examples"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
)

// The examples compile without a diagnostic, and the calls that their comments
// show meet the limits that they talk of.
func TestExamples(t *testing.T) {
	set, found := limits.Parse(exampleFiles(t), limits.Options{})
	if len(found) > 0 {
		t.Fatalf("%v", found)
	}
	for _, tc := range []struct{ call, want string }{
		{"edge tier=free user_id=abc", "10/second x1 token_bucket burst 10"},
		{"edge tier=free user_id=abc endpoint=/login", "10/second x1 token_bucket burst 10"},
		{"edge tier=free endpoint=/search user_id=abc", "10/second x1 token_bucket burst 10"},
		{"edge tier=free endpoint=/search ip=192.0.2.1", "10/second x1 token_bucket burst 10"},
		{"edge tier=free ip=192.0.2.1", "10/second x1 token_bucket burst 10"},
		{"edge user_id=abc", "no rule"},
		{"edge tier=basic user_id=abc", "100/second x1 token_bucket burst 100"},
		{"edge tier=premium user_id=abc", "1000/second x1 token_bucket burst 2000"},
		{"edge tier=enterprise user_id=abc", "10000/second x1 token_bucket burst 10000"},
		{"login endpoint=/login user_id=abc", "5/minute x1 sliding_log burst 0"},
		{"login endpoint=/login ip=192.0.2.7", "100/hour x1 sliding_log burst 0"},
		{"webhooks receiver=shop-17", "50/second x1 token_bucket burst 500"},
		{"webhooks receiver=internal", "passes"},
		{"sms provider=main", "5/second x1 leaky_bucket burst 100"},
		{"sms number=+155501", "3/minute x10 sliding_log burst 0"},
		{"api scope=global", "50000/second x1 token_bucket burst 50000"},
		{"api org=acme", "50000/minute x5 sliding_window burst 0"},
		{"api org=acme api_key=k1", "6000/minute x1 fixed_window burst 0"},
		{"per-ip remote_address=192.0.2.7", "120/minute x1 token_bucket burst 600"},
		{"per-ip remote_address=198.51.100.9", "300/minute x1 fixed_window burst 0"},
	} {
		domain, entries := parse(tc.call)
		got := "no rule"
		if r := set.Domain(domain).Match(entries); r != nil {
			got = describe(r.Limit)
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.call, got, tc.want)
		}
	}
}

// They do in a cluster too: what has rights has enough of them, or is granted
// them by an owner.
func TestExamplesOfACluster(t *testing.T) {
	set, found := limits.Parse(exampleFiles(t), limits.Options{
		Replicated: true, Regions: []string{"us", "eu", "ap"}, Daemons: 30, DaemonsOfRegion: 10, Replicas: 3,
	})
	if set == nil || len(found.Warnings()) > 0 {
		t.Fatalf("%v", found)
	}
	spread, homed := 0, 0
	for _, r := range set.Rules() {
		switch {
		case r.Limit == nil:
		case r.Limit.Homed():
			homed++
		case r.Limit.Placed == rules.Spread:
			spread++
		}
	}
	if spread == 0 || homed == 0 || spread+homed != len(found.Notes()) {
		t.Errorf("%d limits are spread, %d homed, and told of are %v", spread, homed, found)
	}
}

func exampleFiles(t *testing.T) (files []limits.File) {
	t.Helper()
	err := fs.WalkDir(examples.Limits(), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(examples.Limits(), path)
		files = append(files, limits.File{Name: path, Data: data})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func parse(call string) (domain string, entries []rules.Entry) {
	domain, rest, _ := strings.Cut(call, " ")
	for pair := range strings.FieldsSeq(rest) {
		k, v, _ := strings.Cut(pair, "=")
		entries = append(entries, rules.Entry{Key: k, Value: v})
	}
	return domain, entries
}

func describe(l *rules.Limit) string {
	if l == nil {
		return "passes"
	}
	burst := uint32(0)
	if l.Algorithm.Bucket() {
		burst = l.Burst
	}
	return fmt.Sprintf("%d/%v x%d %v burst %d", l.Requests, l.Unit, l.Multiplier, l.Algorithm, burst)
}
