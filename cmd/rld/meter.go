package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// meter shows how far something is on standard error: on a terminal in one
// line that is written over, elsewhere in a line now and then.
type meter struct {
	w        io.Writer
	terminal bool
	ticker   *time.Ticker
	shown    bool
}

func newMeter(p process) *meter {
	m := &meter{w: p.err, terminal: isTerminal(p.err)}
	every := 10 * time.Second
	if m.terminal {
		every = 200 * time.Millisecond
	}
	m.ticker = time.NewTicker(every)
	return m
}

// due ticks when it is time to show something.
func (m *meter) due() <-chan time.Time { return m.ticker.C }

// The codes of terminals to go to the start of the line and to clear the rest
// of it.
const overwrite = "\r\x1b[K"

// show writes a line.
func (m *meter) show(line string) {
	if m.terminal {
		fmt.Fprint(m.w, overwrite+line)
	} else {
		fmt.Fprintln(m.w, line)
	}
	m.shown = true
}

// end takes the line of a terminal away.
func (m *meter) end() {
	m.ticker.Stop()
	if m.terminal && m.shown {
		fmt.Fprint(m.w, overwrite)
	}
}

// isTerminal reports whether what is written is looked at as it comes.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || f.Name() == os.DevNull {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
