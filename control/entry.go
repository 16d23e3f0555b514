package control

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Entry is one command, as a leader proposes it: a change of the record, with
// the text that describes it, or the refusal of one. All texts come from the
// leader, so that daemons of several versions have equal records.
type Entry struct {
	// Format is the format of the record that the entry makes: a daemon must
	// read it to apply the entry.
	Format int `json:"format"`
	// Changes and Before are those of the record that the entry was checked
	// against: the count of changes and the hash. An entry that comes after
	// another change is void.
	Changes uint64  `json:"changes"`
	Before  string  `json:"before"`
	Command Command `json:"command"`
	// Refused is why the leader refuses the command: the entry then changes the
	// outcomes alone. It is in the log, so that the command cannot be done
	// later.
	Refused string `json:"refused,omitempty"`

	Change
}

// Note changes nothing but the history.
type Note struct {
	Text string `json:"text"`
}

// maxText bounds the texts of a command and the name of a region, in bytes.
const maxText = 1 << 10

// checkTexts returns an error for texts that are too long, or no UTF-8: these
// have no JSON form.
func checkTexts(texts ...string) error {
	for _, s := range texts {
		switch {
		case len(s) > maxText:
			return fmt.Errorf("a text of %d bytes: want at most %d", len(s), maxText)
		case !utf8.ValidString(s):
			return fmt.Errorf("the text %q: want UTF-8", s)
		}
	}
	return nil
}

// MaxEntryBytes bounds an entry in its JSON form.
const MaxEntryBytes = 1 << 20

// errVoid is the error of an entry that came after another change than it was
// checked against, or whose command has an outcome. It changes nothing.
var errVoid = errors.New("void")

// DivergedError is the error of an entry that was checked against another
// record than the one here, although that has all entries before it.
type DivergedError struct{ Here, Leader string }

// Error returns a text with both hashes.
func (e *DivergedError) Error() string {
	return fmt.Sprintf("the record here (%s) differs from that of the leader (%s)", e.Here, e.Leader)
}

// Encode returns the JSON form of the entry.
func (e *Entry) Encode() []byte {
	data, err := json.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("control: an entry has no JSON form: %v", err)) // all its types have one
	}
	return data
}

// DecodeEntry reads the JSON form of an entry.
func DecodeEntry(data []byte) (*Entry, error) {
	if len(data) > MaxEntryBytes {
		return nil, fmt.Errorf("entry of %d bytes: want at most %d", len(data), MaxEntryBytes)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var e Entry
	if err := d.Decode(&e); err != nil {
		return nil, fmt.Errorf("entry: %w", err)
	}
	return &e, nil
}

// apply returns the record after an entry at a version. An entry that must not
// be applied changes only the version: the error is errVoid or a
// *DivergedError.
func (r *Record) apply(at Version, e *Entry) (*Record, error) {
	h := r.Hash()
	switch {
	case e.Changes > r.Changes: // the leader had only entries before this one
		return r.at(at, false), &DivergedError{Here: h, Leader: e.Before}
	case e.Changes < r.Changes || r.Outcome(e.Command.Request) != nil:
		return r.at(at, false), errVoid
	case e.Before != h:
		return r.at(at, false), &DivergedError{Here: h, Leader: e.Before}
	}
	next, o := r.at(at, true), Outcome{
		Request: e.Command.Request, Version: at, Refused: e.Refused, Rebalanced: e.Change.Epoch != nil || e.Command.Author == Rebalancer,
	}
	if o.Refused == "" && next.change(e) != nil { // the leader found no fault: it has another version of rld
		next, o.Refused = r.at(at, true), "it is not valid here"
	}
	next.conclude(o)
	return next, nil
}

// check returns the text that describes a change, and an error if the record
// would refuse it.
func (r *Record) check(e *Entry) (string, error) {
	next := r.at(r.Version, true)
	if err := next.change(e); err != nil {
		return "", err
	}
	text := e.describe()
	if err := checkTexts(e.Command.Author, e.Command.Reason, text); err != nil {
		return "", err
	}
	return text, next.checkBytes()
}

// change makes the change of an entry, at the version of the record.
func (r *Record) change(e *Entry) error {
	if e.changes() != 1 {
		return errors.New("a command with no change, or with several: want one")
	}
	if want := e.Change.makes(r.Format); e.Format != want {
		return fmt.Errorf("an entry of format %d: want %d", e.Format, want)
	}
	if e.Region != nil {
		if err := r.changeRegion(e.Region); err != nil {
			return err
		}
	}
	if e.Change.Epoch != nil {
		if err := r.addEpoch(e.Change.Epoch); err != nil {
			return err
		}
	}
	if e.Dropped != nil {
		if err := r.drop(e.Dropped); err != nil {
			return err
		}
	}
	if e.Layouts != nil {
		if err := r.changeLayouts(e.Layouts); err != nil {
			return err
		}
	}
	if e.Change.Format != nil {
		if err := r.changeFormat(e.Change.Format, e.Command.At); err != nil {
			return err
		}
	}
	if e.Revoke != nil {
		if err := r.revoke(e.Revoke, e.Command.At); err != nil {
			return err
		}
	}
	if err := r.Limits.change(e, r.Version); err != nil {
		return err
	}
	r.dropDead(e.Command.At)
	r.dropEnded(e.Command.At)
	r.Layouts.dropLost(e.Command.At)
	if e.Dead != nil {
		if err := r.end(e.Dead); err != nil {
			return err
		}
	}
	c := e.Command
	c.Version = r.Version
	if g := e.Region; g != nil && g.Op == AddRegion && g.Dropped == nil {
		c.Added = g
	}
	switch {
	case e.Change.Epoch != nil:
		r.rememberRebalanced(c)
	case e.Change.Format != nil && e.Change.Format.silent():
	case (e.Layouts == nil || e.Layouts.Recover != nil) && (e.Limits == nil || e.Limits.InForce == nil): // which no person asked for
		r.remember(c)
	}
	return r.validate()
}

// changes returns how many fields are set.
func (c *Change) changes() int {
	n := 0
	for _, set := range []bool{c.Region != nil, c.Note != nil, c.Dropped != nil, c.Dead != nil, c.Epoch != nil, c.Layouts != nil, c.Format != nil, c.Revoke != nil} {
		if set {
			n++
		}
	}
	return n + c.Limits.changes()
}

// describe returns the text of a change.
func (c *Change) describe() string {
	switch {
	case c.Note != nil:
		return c.Note.Text
	case c.Limits != nil:
		return shorten(c.Limits.describe(), maxText)
	case c.Dead != nil:
		return c.Dead.describe()
	case c.Layouts != nil:
		return c.Layouts.describe()
	case c.Format != nil:
		return c.Format.describe()
	case c.Revoke != nil:
		return shorten(c.Revoke.String(), maxText)
	case c.Epoch != nil:
		return fmt.Sprintf("epoch %s: shares of %d rules", c.Epoch.ID, len(c.Epoch.Rules))
	case c.Dropped != nil:
		return shorten(fmt.Sprintf("a recovery dropped version %v: %s", c.Dropped.Version, c.Dropped.Text), maxText)
	}
	g := c.Region
	if g == nil {
		return ""
	}
	if g.Dropped != nil {
		return shorten(fmt.Sprintf("region %s added again, which a recovery dropped with version %v: %s", g.Name, g.Dropped.Version, g.Dropped.Text), maxText)
	}
	switch g.Op {
	case AddRegion:
		return fmt.Sprintf("region %s added with %s", g.Name, percent(g.Weight))
	case WeighRegion:
		return fmt.Sprintf("region %s has %s", g.Name, percent(g.Weight))
	case DrainRegion:
		return fmt.Sprintf("region %s drains", g.Name)
	default:
		return fmt.Sprintf("region %s removed", g.Name)
	}
}

// percent returns parts per million as a percentage.
func percent(ppm uint32) string {
	s := fmt.Sprintf("%d.%04d", ppm/10_000, ppm%10_000)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".") + " %"
}

// withVoter returns the record after a change of the voters at a version: it
// sets the voter, or removes that with its raft name.
func (r *Record) withVoter(at Version, s Voter, remove bool) *Record {
	next := r.at(at, true)
	next.Voters = slices.DeleteFunc(slices.Clone(r.Voters), func(o Voter) bool { return o.Raft == s.Raft })
	if !remove {
		next.Voters = append(next.Voters, s)
		slices.SortFunc(next.Voters, func(a, b Voter) int { return cmp.Compare(a.Raft, b.Raft) })
	}
	return next
}
