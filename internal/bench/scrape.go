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

// page returns the body of a path of a daemon's admin listener.
func (s *served) page(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.admin+path, nil)
	if err != nil {
		return nil, s.failed(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, s.failed(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
	switch {
	case err != nil:
		return nil, s.failed(fmt.Errorf("%s: %w", path, err))
	case resp.StatusCode != http.StatusOK:
		return nil, s.failed(fmt.Errorf("%s: %s: %s", path, resp.Status, strings.TrimSpace(string(body))))
	}
	return body, nil
}

// sample is the values of a daemon's metrics at one instant, by name and labels
// as they are printed.
type sample struct {
	at     time.Time
	values map[string]float64
}

// scrape reads the metrics of a daemon.
func (s *served) scrape(ctx context.Context) (sample, error) {
	body, err := s.page(ctx, "/metrics")
	if err != nil {
		return sample{}, err
	}
	return sample{time.Now(), parseMetrics(string(body))}, nil
}

// parseMetrics reads the lines `name{label="value"} 1.5` of a page of metrics.
func parseMetrics(page string) map[string]float64 {
	values := make(map[string]float64)
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

// get returns a value. A daemon that does not know the metric is an error, so
// that nothing is read as 0 that goes by another name.
func (m sample) get(name string) (float64, error) {
	v, ok := m.values[name]
	if !ok {
		return 0, fmt.Errorf("no metric %s", name)
	}
	return v, nil
}

// openCircuits returns the metrics of the circuits that are not closed, sorted.
func (m sample) openCircuits() []string {
	var open []string
	for name, v := range m.values {
		if v != 0 && strings.HasPrefix(name, "rld_circuit_breaker_state{") {
			open = append(open, name)
		}
	}
	slices.Sort(open)
	return open
}

// grown returns by how much values grew, together, from one sample to a later
// one.
func grown(before, after sample, names ...string) (float64, error) {
	sum := 0.0
	for _, name := range names {
		was, err := before.get(name)
		if err != nil {
			return 0, err
		}
		is, err := after.get(name)
		if err != nil {
			return 0, err
		}
		sum += is - was
	}
	return sum, nil
}

// membersReady returns how many ready daemons a daemon knows, with itself.
func (s *served) membersReady(ctx context.Context) (int, error) {
	body, err := s.page(ctx, "/members")
	if err != nil {
		return 0, err
	}
	var answer api.MembersAnswer
	if err := json.Unmarshal(body, &answer); err != nil {
		return 0, s.failed(fmt.Errorf("members: %w", err))
	}
	n := 0
	for _, m := range answer.Members {
		if m.Ready {
			n++
		}
	}
	return n, nil
}

// tripTo asks a daemon for the round trip to another one.
func (s *served) tripTo(ctx context.Context, name string) (time.Duration, error) {
	body, err := s.page(ctx, "/netcheck")
	if err != nil {
		return 0, err
	}
	var answer api.NetcheckAnswer
	if err := json.Unmarshal(body, &answer); err != nil {
		return 0, s.failed(fmt.Errorf("netcheck: %w", err))
	}
	for _, p := range answer.Peers {
		if p.Name == name && p.RTTSeconds != nil {
			return time.Duration(*p.RTTSeconds * float64(time.Second)), nil
		}
	}
	return 0, fmt.Errorf("the round trip to %s is not known", name)
}

// ownerOf asks a daemon which one owns a user's key: its name.
func (s *served) ownerOf(ctx context.Context, key string, user int) (string, error) {
	q := url.Values{"domain": {benchDomain}, "d": {key + ":" + userName(user)}}
	body, err := s.page(ctx, "/v1/explain?"+q.Encode())
	if err != nil {
		return "", err
	}
	var answer api.ExplainAnswer
	if err := json.Unmarshal(body, &answer); err != nil {
		return "", s.failed(fmt.Errorf("explanation: %w", err))
	}
	if len(answer.Descriptors) != 1 || answer.Descriptors[0].StrictKey == nil ||
		answer.Descriptors[0].StrictKey.Owner == nil {
		return "", s.failed(fmt.Errorf("%s=%s has no owner: %s", key, userName(user), body))
	}
	return answer.Descriptors[0].StrictKey.Owner.Name, nil
}
