package admitted

import (
	"fmt"
	"time"
)

// Window identifies one window of one key of a rule.
type Window struct {
	Rule, Key string
	Start     time.Time // in UTC, multiples of Length after the Unix epoch
	Length    time.Duration
}

// WindowOf returns the window that an answer is about. The answer at the given
// time stated how much of the window was left. Both are known to some
// milliseconds only, so the nearest end of a window counts.
func WindowOf(rule, key string, length time.Duration, at time.Time, left time.Duration) Window {
	end := (at.Add(left).UnixNano() + int64(length/2)) / int64(length)
	return Window{Rule: rule, Key: key, Start: time.Unix(0, (end-1)*int64(length)).UTC(), Length: length}
}

// String returns the key and the end of the window, for messages.
func (w Window) String() string {
	return fmt.Sprintf("%s=%s until %s", w.Rule, w.Key, w.End().Format("15:04:05"))
}

// End returns the instant at which the next window begins.
func (w Window) End() time.Time { return w.Start.Add(w.Length) }

// Contains reports whether an instant is in the window.
func (w Window) Contains(t time.Time) bool { return !t.Before(w.Start) && t.Before(w.End()) }
