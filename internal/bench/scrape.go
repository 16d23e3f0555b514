package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/georld/rld/server/admin/api"
)

// maxPage bounds the bytes read from an admin page.
const maxPage = 16 << 20

// readyPath is the page that a daemon answers with 200 when it is ready.
const readyPath = "/readyz"

// page returns the body of a path of a daemon's admin listener.
func (s *served) page(ctx context.Context, path string) ([]byte, error) {
	req := must(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.admin+path, nil))
	req.Close = path == readyPath // no connection stays open at an idle daemon
	resp, err := (&http.Client{Timeout: readyWait}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, resp.Status, strings.TrimSpace(string(body)))
	}
	return body, err
}

// read decodes the JSON of a path of a daemon's admin listener.
func read[T any](ctx context.Context, s *served, path string) (answer T) {
	body, err := s.page(ctx, path)
	if err == nil {
		err = json.Unmarshal(body, &answer)
	}
	if err != nil {
		check(s.failed(fmt.Errorf("%s: %w", path, err)))
	}
	return answer
}

// sample is the values of a daemon's metrics at one instant, by name and labels
// as they are printed.
type sample map[string]float64

// scrape reads the metrics of some daemons.
func scrape(ctx context.Context, all ...*served) []sample {
	var out []sample
	for _, s := range all {
		body, err := s.page(ctx, "/metrics")
		if err != nil {
			check(s.failed(err))
		}
		out = append(out, parseMetrics(string(body)))
	}
	return out
}

// parseMetrics reads the lines `name{label="value"} 1.5` of a page of metrics.
func parseMetrics(page string) sample {
	values := make(sample)
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		space := strings.LastIndexByte(line, ' ')
		if space < 0 {
			continue
		}
		if v, err := strconv.ParseFloat(line[space+1:], 64); err == nil {
			values[line[:space]] = v
		}
	}
	return values
}

// openCircuits returns the metrics of the circuits that are not closed, sorted.
func (m sample) openCircuits() []string {
	var open []string
	for name, v := range m {
		if v != 0 && strings.HasPrefix(name, "rld_circuit_breaker_state{") {
			open = append(open, name)
		}
	}
	slices.Sort(open)
	return open
}

// grown returns by how much values grew, together, from samples of some daemons
// to later ones. It fails for a metric that a daemon does not have, so that no
// misspelled name reads as 0.
func grown(before, after []sample, names ...string) float64 {
	sum := 0.0
	for i := range before {
		for _, name := range names {
			was, had := before[i][name]
			is, has := after[i][name]
			if !had || !has {
				check(fmt.Errorf("no metric %s", name))
			}
			sum += is - was
		}
	}
	return sum
}

// membersReady returns how many ready daemons a daemon knows, with itself.
func (s *served) membersReady(ctx context.Context) int {
	n := 0
	for _, m := range read[api.MembersAnswer](ctx, s, "/members").Members {
		if m.Ready {
			n++
		}
	}
	return n
}

// tripTo asks a daemon for the round trip to another one.
func (s *served) tripTo(ctx context.Context, name string) time.Duration {
	for _, p := range read[api.NetcheckAnswer](ctx, s, "/netcheck").Peers {
		if p.Name == name && p.RTTSeconds != nil {
			return time.Duration(*p.RTTSeconds * float64(time.Second))
		}
	}
	check(fmt.Errorf("the round trip to %s is not known", name))
	return 0
}

// ownerOf asks a daemon which one owns a user's key: its name.
func (s *served) ownerOf(ctx context.Context, key string, user int) string {
	q := url.Values{"domain": {benchDomain}, "d": {key + ":" + userName(user)}}
	answer := read[api.ExplainAnswer](ctx, s, "/v1/explain?"+q.Encode())
	if len(answer.Descriptors) != 1 || answer.Descriptors[0].StrictKey == nil ||
		answer.Descriptors[0].StrictKey.Owner == nil {
		check(s.failed(fmt.Errorf("%s=%s has no owner: %+v", key, userName(user), answer)))
	}
	return answer.Descriptors[0].StrictKey.Owner.Name
}
