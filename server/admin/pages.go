package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/georld/rld/server/admin/api"
)

// Bounds of requests.
const (
	maxRuleText     = 4 << 10  // bytes of the name of a rule
	maxExplainBytes = 64 << 10 // of a query to /v1/explain
	// explainWithin bounds the wait of /v1/explain for an owner.
	explainWithin = time.Second
)

// now returns the time of an answer.
func now() time.Time { return time.Now().UTC() }

func members(r request) (any, error) {
	list := r.o.Members
	out := api.MembersAnswer{At: now(), Alone: list == nil, Revoked: []string{}}
	if r.o.Cluster != nil {
		if c := r.o.Cluster().Cluster; c != nil {
			out.Revoked = c.Revoked
		}
	}
	if list != nil {
		out.Members = slices.Clone(list())
		slices.SortFunc(out.Members, func(a, b api.Member) int {
			return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Name, b.Name),
				cmp.Compare(a.Incarnation, b.Incarnation))
		})
	}
	return out, nil
}

func netcheck(r request) (any, error) {
	list := r.o.Netcheck
	out := api.NetcheckAnswer{At: now(), Alone: list == nil}
	if list != nil {
		out.Peers = slices.Clone(list())
		slices.SortFunc(out.Peers, func(a, b api.PeerCheck) int {
			return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Name, b.Name),
				cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.Incarnation, b.Incarnation))
		})
	}
	return out, nil
}

func budget(r request) (any, error) {
	values := r.URL.Query()
	q := api.BudgetQuery{Rule: values.Get("rule"), Target: -1}
	if len(q.Rule) > maxRuleText {
		return nil, fmt.Errorf("a rule of %d bytes, want at most %d", len(q.Rule), maxRuleText)
	}
	if text := values.Get("false_denials"); text != "" {
		var err error
		if q.Target, err = api.ParsePercent(text); err != nil {
			return nil, fmt.Errorf("false_denials: %w", err)
		}
		if q.Rule == "" {
			return nil, errors.New("false_denials requests advice on one rule: add rule=")
		}
	}
	if r.o.Budget == nil {
		return api.BudgetAnswer{At: now(), Alone: true}, nil
	}
	out, err := r.o.Budget(q)
	out.At = now()
	return out, failed(http.StatusNotFound, err)
}

func status(r request) (any, error) {
	if r.o.Status == nil {
		return nil, unsupported("status")
	}
	out := r.o.Status()
	out.At = now()
	return out, nil
}

func strict(r request) (any, error) {
	out := api.StrictAnswer{Alone: true}
	if r.o.Strict != nil {
		out = r.o.Strict()
	}
	out.At = now()
	return out, nil
}

// unsupported is the error of a page that this daemon does not serve.
func unsupported(page string) error {
	return failed(http.StatusNotImplemented, fmt.Errorf("this daemon does not serve %s", page))
}

func explain(r request) (any, error) {
	q := api.ExplainQuery{Hits: 1}
	var err error
	if r.Method == http.MethodPost {
		err = r.readJSON(maxExplainBytes, `{"domain": "...", "descriptors": [{"entries": [{"key": "...", "value": "..."}]}]}`, &q)
	} else {
		err = readExplainQuery(r.URL, &q)
	}
	switch {
	case err != nil:
		return nil, err
	case q.Hits == 0:
		return nil, errors.New("hits is 0: want at least 1")
	case r.o.Explain == nil:
		return nil, unsupported("explain")
	}
	ctx, cancel := context.WithTimeout(r.Context(), explainWithin)
	defer cancel()
	out, err := r.o.Explain(ctx, q)
	out.At = now()
	return out, err
}

// readExplainQuery reads ?domain=edge&d=tier:free,user_id:abc&hits=1, with a d
// for each descriptor, as /v1/check of the HTTP edge accepts it. Values with a
// comma need a POST.
func readExplainQuery(u *url.URL, q *api.ExplainQuery) error {
	if n := len(u.RawQuery); n > maxExplainBytes {
		return fmt.Errorf("a query of %d bytes, want at most %d", n, maxExplainBytes)
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fmt.Errorf("invalid query: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case name != "domain" && name != "d" && name != "hits":
			return fmt.Errorf("unknown parameter %q: want domain, hits, and d=key:value,key:value for each descriptor",
				api.Clip(name))
		case name != "d" && len(values[name]) > 1:
			return fmt.Errorf("%s is given twice", name)
		}
	}
	q.Domain = values.Get("domain")
	if text := values.Get("hits"); text != "" {
		if q.Hits, err = strconv.ParseUint(text, 10, 64); err != nil {
			return fmt.Errorf("hits: %q is not a whole number from 1 up", api.Clip(text))
		}
	}
	for _, text := range values["d"] {
		var d api.ExplainDescriptor
		for entry := range strings.SplitSeq(text, ",") {
			key, value, ok := strings.Cut(entry, ":")
			if !ok || key == "" {
				return fmt.Errorf("d: %q is not key:value", api.Clip(entry))
			}
			d.Entries = append(d.Entries, api.ExplainEntry{Key: key, Value: value})
		}
		q.Descriptors = append(q.Descriptors, d)
	}
	return nil
}

func top(r request) (any, error) {
	q, err := readTopQuery(r.URL.Query())
	if err != nil {
		return nil, err
	}
	if r.o.Top == nil {
		return nil, unsupported("top")
	}
	out := r.o.Top(q)
	out.At, out.By, out.Keys = now(), q.By, slices.Clone(out.Keys)
	if q.By == api.TopByDenied {
		out.Keys = slices.DeleteFunc(out.Keys, func(k api.TopKey) bool { return k.DeniedPerSecond == 0 })
	}
	slices.SortFunc(out.Keys, func(x, y api.TopKey) int {
		first, second := cmp.Compare(y.HitsPerSecond, x.HitsPerSecond), cmp.Compare(y.DeniedPerSecond, x.DeniedPerSecond)
		if q.By == api.TopByDenied {
			first, second = second, first
		}
		return cmp.Or(first, second, cmp.Compare(x.Key, y.Key), cmp.Compare(x.Domain, y.Domain), cmp.Compare(x.Rule, y.Rule))
	})
	out.Keys = out.Keys[:min(len(out.Keys), q.N)]
	for i := range out.Keys {
		if !q.Reveal {
			out.Keys[i].Text = ""
		}
	}
	return out, nil
}

func readTopQuery(values url.Values) (api.TopQuery, error) {
	q := api.TopQuery{By: api.TopByHits, N: 10}
	if text := values.Get("by"); text != "" {
		q.By = api.TopOrder(text)
		if q.By != api.TopByHits && q.By != api.TopByDenied {
			return q, fmt.Errorf("by: unknown order %q: want %s or %s", api.Clip(text), api.TopByHits, api.TopByDenied)
		}
	}
	if text := values.Get("n"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > api.MaxTop {
			return q, fmt.Errorf("n: %q is not a number from 1 to %d", api.Clip(text), api.MaxTop)
		}
		q.N = n
	}
	switch text := values.Get("reveal"); text {
	case "", "false":
	case "true":
		q.Reveal = true
	default:
		return q, fmt.Errorf("reveal: %q is neither true nor false", api.Clip(text))
	}
	return q, nil
}
