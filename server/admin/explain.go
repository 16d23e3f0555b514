package admin

import (
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
)

// ExplainQuery is what is asked of /v1/explain.
type ExplainQuery struct {
	Domain      string              `json:"domain"`
	Descriptors []ExplainDescriptor `json:"descriptors"`
	// Hits is what each descriptor asks for; absent is 1.
	Hits uint64 `json:"hits"`
}

// ExplainDescriptor is one descriptor of a question.
type ExplainDescriptor struct {
	Entries []ExplainEntry `json:"entries"`
}

// ExplainEntry is one entry of a descriptor.
type ExplainEntry struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

const (
	// maxExplainBytes bounds a question. What else is to be said against one says
	// who answers it.
	maxExplainBytes = 64 << 10
	// explainWithin bounds the wait for a home.
	explainWithin = time.Second
)

// explainBody is what a question looks like.
const explainBody = `{"domain": "...", "descriptors": [{"entries": [{"key": "...", "value": "..."}]}]}`

// explainer answers a question; its error says what is wrong with it.
type explainer = func(context.Context, ExplainQuery) (ExplainAnswer, error)

// explainPage serves what explain returns, of a question that read reads.
func explainPage(explain explainer, read func(http.ResponseWriter, *http.Request) (ExplainQuery, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := read(w, r)
		if err == nil && q.Hits == 0 {
			err = errors.New("hits is 0, which asks for nothing: want at least 1")
		}
		if err != nil {
			fail(w, http.StatusBadRequest, err)
			return
		}
		if explain == nil {
			failNothing(w, "explains nothing")
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), explainWithin)
		defer cancel()
		answer, err := explain(ctx, q)
		if err != nil {
			fail(w, http.StatusBadRequest, err)
			return
		}
		answer.fill()
		answer.At = time.Now().UTC()
		writeJSON(w, answer)
	}
}

// readExplainBody reads the question of a POST.
func readExplainBody(w http.ResponseWriter, r *http.Request) (ExplainQuery, error) {
	q := ExplainQuery{Hits: 1}
	err := readJSON(w, r, maxExplainBytes, explainBody, &q)
	return q, err
}

// readExplainQuery reads the question of a GET:
// ?domain=edge&d=tier:free,user_id:abc&hits=1, with a d for each descriptor, as
// /v1/check of the HTTP edge takes it. Values with a comma go into a POST.
func readExplainQuery(_ http.ResponseWriter, r *http.Request) (ExplainQuery, error) {
	q := ExplainQuery{Hits: 1}
	if n := len(r.URL.RawQuery); n > maxExplainBytes {
		return q, fmt.Errorf("a question of %d bytes, want at most %d", n, maxExplainBytes)
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return q, fmt.Errorf("the query cannot be read: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case name != "domain" && name != "d" && name != "hits":
			return q, fmt.Errorf("%q is no parameter: want domain, hits, and a d=key:value,key:value for each descriptor",
				clip(name))
		case name != "d" && len(values[name]) > 1:
			return q, fmt.Errorf("%s is given twice", name)
		}
	}
	q.Domain = values.Get("domain")
	if text := values.Get("hits"); text != "" {
		if q.Hits, err = strconv.ParseUint(text, 10, 64); err != nil {
			return q, fmt.Errorf("hits: %q is not a whole number from 1 up", clip(text))
		}
	}
	for _, text := range values["d"] {
		var d ExplainDescriptor
		for entry := range strings.SplitSeq(text, ",") {
			key, value, ok := strings.Cut(entry, ":")
			if !ok || key == "" {
				return q, fmt.Errorf("d: %q is no key:value", clip(entry))
			}
			d.Entries = append(d.Entries, ExplainEntry{key, value})
		}
		q.Descriptors = append(q.Descriptors, d)
	}
	return q, nil
}
