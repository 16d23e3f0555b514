package main

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/server/admin/api"
)

func newExplain(p process) *cobra.Command {
	// What may be asked is what `rld check` may ask, at another listener.
	o := checkOptions{hits: 1}
	var call *rldv1.CheckRequest
	cmd := query[api.ExplainAnswer]{
		path: "/v1/explain",
		request: func(args []string) (_ url.Values, _ any, err error) {
			if o.hits == 0 {
				return nil, nil, errors.New("--hits 0 asks for nothing: use 1 or more")
			}
			if call, err = o.question(args); err != nil {
				return nil, nil, err
			}
			return nil, explainQuery(call), nil
		},
		lacks: func(a *api.ExplainAnswer) string {
			if n := len(call.GetDescriptors()); len(a.Descriptors) != n {
				return fmt.Sprintf("%d of %s explained", len(a.Descriptors), plural(n, "descriptor"))
			}
			return ""
		},
		text: func(a *api.ExplainAnswer) string { return callExplained(call, a) },
	}.command(p, &cobra.Command{
		Use:   "explain --domain DOMAIN KEY=VALUE...",
		Short: "Explain how a running daemon would decide a request",
		Long: "Ask a running daemon how it would decide a request now, and why: the rule and its place\n" +
			"in the files, the owner of the key and whether it is reachable, the counts of each\n" +
			"region and their age, the rights, the results of both gates, and the headers of the\n" +
			"answer. Nothing is charged. The KEY=VALUE arguments and --descriptor are those of rld\n" +
			"check. The exit code is 0 when there is an answer, admitted or denied, and 2 when there\n" +
			"is none.",
		Example: "  rld explain --domain edge endpoint=/login user=abc\n" +
			"  rld explain --domain edge --descriptor org=acme --descriptor org=acme,key=k1 -o json",
		Args: cobra.ArbitraryArgs,
	})
	o.addFlags(cmd, "hits that each descriptor would be charged")
	return cmd
}

// explainQuery puts a question as the admin listener takes it.
func explainQuery(q *rldv1.CheckRequest) *api.ExplainQuery {
	out := &api.ExplainQuery{Domain: q.GetDomain(), Hits: q.GetHits()}
	for _, d := range q.GetDescriptors() {
		var entries []api.ExplainEntry
		for _, e := range d.GetEntries() {
			entries = append(entries, api.ExplainEntry{Key: e.GetKey(), Value: e.GetValue()})
		}
		out.Descriptors = append(out.Descriptors, api.ExplainDescriptor{Entries: entries})
	}
	return out
}
