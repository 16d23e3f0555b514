package report

import (
	"bytes"
	_ "embed" // For the parts of the page.
	"encoding/json"
	"fmt"
	"html/template"
	"io"

	"github.com/georld/rld/sim"
)

var (
	//go:embed page.html
	pageText string
	//go:embed page.css
	pageStyle string
	//go:embed charts.js
	chartScript string
	//go:embed uplot/uPlot.iife.min.js
	uplotScript string
	//go:embed uplot/uPlot.min.css
	uplotStyle string
	//go:embed uplot/LICENSE
	uplotLicense string
)

// page is the data of the template.
type page struct {
	*sim.Result
	Command string
	Verdict verdict
	Charts  []chart
	Faults  []fault
	Sizes   []gridSize

	Style          template.CSS
	Library, Draw  template.JS
	JSON           template.JS
	LeftOut        int // rules without a chart
	HasSeries      bool
	LibraryLicense string
}

// HTML writes the page of a result. command runs the same again, "" for none.
// Every number on the page is one of the result, which the page carries as JSON
// in the element with the id result. Tables need no JavaScript, charts do.
func HTML(w io.Writer, r *sim.Result, command string) error {
	data, err := json.Marshal(r) // escapes what could end a script
	if err != nil {
		return fmt.Errorf("the result cannot be written as JSON: %w", err)
	}
	t, err := template.New("page.html").Funcs(numbers()).Parse(pageText)
	if err != nil {
		return fmt.Errorf("the template of the report: %w", err)
	}
	p := page{
		Result: r, Command: command, Verdict: judge(r), HasSeries: r.Series != nil, Sizes: sizes(r.Grid),
		Style:          template.CSS(uplotStyle + "\n" + pageStyle),
		Library:        template.JS(uplotScript),
		Draw:           template.JS(chartScript),
		JSON:           template.JS(data),
		LibraryLicense: uplotLicense,
	}
	if r.Series != nil {
		p.Charts, p.LeftOut = charts(r)
		p.Faults = faults(r)
	}
	var b bytes.Buffer // so that a page is whole or not there
	if err := t.Execute(&b, p); err != nil {
		return fmt.Errorf("the report cannot be made: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}
