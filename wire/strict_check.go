package wire

import (
	"unicode/utf8"

	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/sticky"
)

// The bounds of messages about strict keys, beside those of package sticky.
const (
	// MaxStrictGenerations bounds the generations of one list.
	MaxStrictGenerations = 1_024
	// MaxStrictName bounds a name, in bytes.
	MaxStrictName = 255
)

// checkStrict returns a *SizeError or a *FormatError for a message that exceeds
// a bound or whose lists are not in order.
func checkStrict(m *sticky.Message) error {
	for _, kind := range [...]struct {
		name  string
		n, of int
	}{
		{"lease requests", len(m.Requests), sticky.MaxItems},
		{"grants", len(m.Grants), sticky.MaxItems},
		{"accepts", len(m.Accepts), sticky.MaxItems},
		{"accepted", len(m.Accepted), sticky.MaxItems},
		{"snapshot requests", len(m.SnapshotRequests), sticky.MaxItems},
		{"snapshot chunks", len(m.SnapshotChunks), sticky.MaxSnapshotChunks},
		{"layouts", len(m.Layouts), sticky.MaxLayouts},
	} {
		if kind.n > kind.of {
			return &SizeError{What: kind.name, Got: kind.n, Max: kind.of}
		}
	}
	for i := range m.Grants {
		if why := m.Grants[i].Reason; why > sticky.MaxReason {
			return malformed("grant %d for reason %d, want at most %d", i, why, sticky.MaxReason)
		}
	}
	for i := range m.Accepts {
		if err := checkRounds("accept", i, m.Accepts[i].Ballot); err != nil {
			return err
		}
		if err := checkWatermarks("accept", i, m.Accepts[i].Known, m.Accepts[i].Watermarks); err != nil {
			return err
		}
	}
	for i := range m.Accepted {
		if err := checkAccepted(i, &m.Accepted[i]); err != nil {
			return err
		}
	}
	for i := range m.SnapshotChunks {
		if err := checkChunk(&m.SnapshotChunks[i]); err != nil {
			return err
		}
	}
	for i := range m.Layouts {
		if err := checkLayout(&m.Layouts[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkWatermarks checks lists of watermarks; kind and item name their message.
func checkWatermarks(kind string, item int, lists ...sticky.Watermarks) error {
	for _, watermarks := range lists {
		if len(watermarks) > sticky.MaxWatermarks {
			return &SizeError{What: "watermarks of one " + kind, Got: len(watermarks), Max: sticky.MaxWatermarks}
		}
		for i := 1; i < len(watermarks); i++ {
			if watermarks[i].Window <= watermarks[i-1].Window {
				return malformed("%s %d: watermarks are not ascending at %d", kind, item, i)
			}
		}
	}
	return nil
}

// checkRounds checks ballots; kind and item name their message.
func checkRounds(kind string, item int, ballots ...sticky.Ballot) error {
	for _, b := range ballots {
		if b.Round > sticky.MaxRound {
			return malformed("%s %d: ballot of round %d, want at most %d", kind, item, b.Round, uint64(sticky.MaxRound))
		}
	}
	return nil
}

func checkAccepted(i int, v *sticky.Accepted) error {
	switch {
	case v.Reason > sticky.MaxReason:
		return malformed("accepted %d for reason %d, want at most %d", i, v.Reason, sticky.MaxReason)
	case len(v.Generations) > MaxStrictGenerations:
		return &SizeError{What: "generations", Got: len(v.Generations), Max: MaxStrictGenerations}
	}
	if err := checkRounds("accepted", i, v.Ballot, v.Promised); err != nil {
		return err
	}
	return checkWatermarks("accepted", i, v.Held)
}

func checkChunk(p *sticky.SnapshotChunk) error {
	switch {
	case p.Reason > sticky.MaxReason:
		return malformed("snapshot chunk for reason %d, want at most %d", p.Reason, sticky.MaxReason)
	case len(p.Records) > sticky.MaxRecords:
		return &SizeError{What: "records", Got: len(p.Records), Max: sticky.MaxRecords}
	case len(p.Generations) > MaxStrictGenerations:
		return &SizeError{What: "generations", Got: len(p.Generations), Max: MaxStrictGenerations}
	}
	for i := range p.Records {
		if i > 0 {
			before, at := p.Records[i-1].Key, p.Records[i].Key
			if at.Hi < before.Hi || at.Hi == before.Hi && at.Lo <= before.Lo {
				return malformed("snapshot chunk: records are not ascending at %d", i)
			}
		}
		if err := checkRounds("record", i, p.Records[i].Ballot); err != nil {
			return err
		}
		if err := checkWatermarks("record", i, p.Records[i].Watermarks); err != nil {
			return err
		}
	}
	return nil
}

func checkLayout(l *route.Layout) error {
	switch {
	case len(l.Regions) > route.MaxRegions:
		return &SizeError{What: "regions", Got: len(l.Regions), Max: route.MaxRegions}
	case len(l.Pins) > route.MaxPins:
		return &SizeError{What: "pins", Got: len(l.Pins), Max: route.MaxPins}
	}
	for i := range l.Regions {
		g := &l.Regions[i]
		if i > 0 && g.Name <= l.Regions[i-1].Name {
			return malformed("layout: regions are not ascending at %d", i)
		}
		if err := checkNames(g.Name); err != nil {
			return err
		}
		if len(g.Generations) > MaxStrictGenerations {
			return &SizeError{What: "generations", Got: len(g.Generations), Max: MaxStrictGenerations}
		}
		for _, names := range [...][]string{g.Replicas, g.Former} {
			if len(names) > route.MaxReplicas {
				return &SizeError{What: "replicas of one region", Got: len(names), Max: route.MaxReplicas}
			}
			if err := checkNames(names...); err != nil {
				return err
			}
		}
	}
	for i := range l.Pins {
		if i > 0 && l.Pins[i].Rule <= l.Pins[i-1].Rule {
			return malformed("layout: pins are not ascending at %d", i)
		}
		if err := checkNames(l.Pins[i].Region); err != nil {
			return err
		}
	}
	return nil
}

// checkNames checks that names ascend and that each is valid.
func checkNames(names ...string) error {
	for i, name := range names {
		switch {
		case name == "" || len(name) > MaxStrictName || !utf8.ValidString(name):
			return malformed("layout: name %.260q, want 1 to %d bytes of UTF-8", name, MaxStrictName)
		case i > 0 && name <= names[i-1]:
			return malformed("layout: names are not ascending at %q", name)
		}
	}
	return nil
}
