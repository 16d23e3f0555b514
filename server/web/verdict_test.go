package web

import (
	"fmt"
	"testing"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
)

// Of many descriptors some are listed, among them the one that refused.
func TestManyDescriptorsKeepHeadersShort(t *testing.T) {
	x := testExchange()
	for i := range node.MaxDescriptors {
		l := &rules.Limit{Requests: 1, Unit: rules.Second, Multiplier: 1}
		r := &rules.Rule{Path: fmt.Sprintf("rule %d", i), Limit: l}
		x.call.Statuses = append(x.call.Statuses, node.Status{Rule: r, Limit: l, Remaining: 1})
	}
	x.call.Statuses[200].Over = true
	x.call.Decision = node.Decision{Refused: 200}
	v := judge(x, &server.Settings{}, startOfScripts())
	got := v.draftFields(nil)[0].Value
	want := ""
	for i := range maxItems - 1 {
		want += fmt.Sprintf(`"rule %d";q=1;w=1, `, i)
	}
	if want += `"rule 200";q=1;w=1`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// An engine that breaks its contract makes no panic.
func TestJudgeOfNonsense(t *testing.T) {
	for _, refused := range []int{-1, 0, 1, 7} {
		x := testExchange()
		x.call.Statuses = []node.Status{{}}
		x.call.Decision = node.Decision{Refused: refused}
		v := judge(x, &server.Settings{}, startOfScripts())
		if b := append(encode(v.fields(nil)), encode(v.body(checkForm))...); v.allowed || v.retryAfter != 1 || len(b) == 0 {
			t.Errorf("refused %d: %s", refused, b)
		}
	}
}
