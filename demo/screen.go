package demo

import (
	"fmt"
	"strings"
)

// The control sequences of a terminal.
const (
	escSave    = "\x1b7"
	escBack    = "\x1b8"
	escHide    = "\x1b[?25l"
	escShow    = "\x1b[?25h"
	escClear   = "\x1b[2J"
	escRest    = "\x1b[K" // clears the rest of the line
	escBold    = "\x1b[1m"
	escAlarm   = "\x1b[1;31m"
	escPlain   = "\x1b[0m"
	escNoScope = "\x1b[r"
)

const (
	prompt = "> "
	// leastScroll is how many rows are kept below the table.
	leastScroll = 5
	defaultRows = 24
)

// screen shows the table at the top of a terminal, in place, and input and
// messages below it, in a scrolling area. The terminal itself edits the input
// line.
type screen struct {
	size   func() (rows int, ok bool)
	out    writer
	rows   int // of the terminal, 0 before the table was drawn
	height int // of the table as it is drawn
}

func (s *screen) banner(text string) {
	s.out.write(text + "\n")
}

func (s *screen) say(text string) {
	if s.rows == 0 {
		s.out.write(text + "\n")
		return
	}
	s.out.write("\r" + escRest + text + "\n" + prompt)
}

func (s *screen) report(r *Report) {
	table := Table(r)
	rows, ok := s.size()
	if !ok || rows <= 0 {
		rows = defaultRows
	}
	var b strings.Builder
	b.WriteString(escHide)
	if height := max(min(len(table)+1, rows-leastScroll), 1); rows != s.rows || height != s.height {
		s.arrange(&b, rows, height)
	}
	b.WriteString(escSave)
	for i := range s.height - 1 {
		fmt.Fprintf(&b, "\x1b[%d;1H%s%s", i+1, style(i, table[i], r), escRest)
	}
	fmt.Fprintf(&b, "\x1b[%d;1H%s%s", s.height, strings.Repeat("-", tableWidth), escRest)
	b.WriteString(escBack + escShow)
	s.out.write(b.String())
}

// arrange gives the table its rows at the top and lets the others scroll. What
// was on the screen goes up, to where it can be looked for.
func (s *screen) arrange(b *strings.Builder, rows, height int) {
	fmt.Fprintf(b, "%s\x1b[%d;1H%s%s", escNoScope, rows, strings.Repeat("\n", rows), escClear)
	fmt.Fprintf(b, "\x1b[%d;%dr\x1b[%d;1H%s", height+1, rows, height+1, prompt)
	s.rows, s.height = rows, height
}

// style marks what catches the eye.
func style(i int, line string, r *Report) string {
	switch {
	case i == 0:
		return escBold + line + escPlain
	case i == 1 && len(r.WAN.Cuts) > 0:
		return escAlarm + line + escPlain
	}
	return line
}

func (s *screen) last(r *Report) {
	if s.rows > 0 {
		s.out.write(fmt.Sprintf("%s\x1b[%d;1H\r\n", escNoScope, s.rows))
		s.rows = 0
	}
	s.out.write(Summary(r) + "\n")
}
