package demo

import (
	"encoding/json"
	"fmt"
	"strings"
)

// lineView prints a line for each report and each message.
type lineView struct{ out writer }

func (v *lineView) print(text string) { v.out.write(text + "\n") }

func (v *lineView) banner(text string) { v.print(text) }
func (v *lineView) report(r *Report)   { v.print(Plain(r)) }
func (v *lineView) say(text string)    { v.print("* " + strings.ReplaceAll(text, "\n", "\n  ")) }
func (v *lineView) last(r *Report)     { v.print(Summary(r)) }

// maxNotes bounds the messages between two reports.
const maxNotes = 100

// jsonView prints each report as a JSON object on a line of its own.
type jsonView struct {
	out, err writer
	notes    []string
}

func (v *jsonView) banner(text string) { v.err.write(text + "\n") }

func (v *jsonView) say(text string) {
	if len(v.notes) < maxNotes {
		v.notes = append(v.notes, text)
	}
}

func (v *jsonView) report(r *Report) {
	r.Notes, v.notes = v.notes, nil
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		fmt.Fprintf(&b, "{\"error\": %q}\n", err.Error())
	}
	v.out.write(b.String())
}

func (v *jsonView) last(r *Report) { v.report(r) }

// Summary returns the result of a demo as text.
func Summary(r *Report) string {
	var b strings.Builder
	t := &r.Traffic
	fmt.Fprintf(&b, "%s: %d asks, %d admitted, %d denied, %d failed",
		clock(r.Seconds), t.Asked, t.Admitted, t.Denied, t.Failed)
	if t.Unserved > 0 {
		fmt.Fprintf(&b, ", %d where no daemon ran", t.Unserved)
	}
	if t.Left > 0 {
		fmt.Fprintf(&b, ", %d not asked for want of time", t.Left)
	}
	b.WriteString("\nworst overage:")
	for i := range r.Rules {
		fmt.Fprintf(&b, " %s %s,", r.Rules[i].Rule, worstOf(r.Rules[i].shown()))
	}
	text := strings.TrimSuffix(b.String(), ",")
	for i := range r.Rules {
		if rule := &r.Rules[i]; rule.Strict {
			text += fmt.Sprintf("\n%s: worst %s %s, %d used up", rule.Rule, rule.windowName(), rule.fullest(), rule.Full)
		}
	}
	text += "\n" + r.knownLine()
	if r.Convergence != nil {
		text += fmt.Sprintf("\ncounts converged %.2f s after the last heal", *r.Convergence)
	}
	return text
}

func worstOf(v float64) string {
	if v <= 0 {
		return "none"
	}
	return share(v)
}
