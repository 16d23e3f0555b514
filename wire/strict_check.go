package wire

import (
	"unicode/utf8"

	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
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
	var c checker
	c.atMost("lease requests", len(m.Requests), sticky.MaxItems)
	c.atMost("grants", len(m.Grants), sticky.MaxItems)
	c.atMost("accepts", len(m.Accepts), sticky.MaxItems)
	c.atMost("accepted", len(m.Accepted), sticky.MaxItems)
	c.atMost("snapshot requests", len(m.SnapshotRequests), sticky.MaxItems)
	c.atMost("snapshot chunks", len(m.SnapshotChunks), sticky.MaxSnapshotChunks)
	c.atMost("layouts", len(m.Layouts), sticky.MaxLayouts)
	if c.err != nil {
		return c.err // before the work of a list without bounds
	}
	for i := range m.Grants {
		c.reason("grant", i, m.Grants[i].Reason)
	}
	for i := range m.Accepts {
		a := &m.Accepts[i]
		c.rounds("accept", i, a.Ballot)
		c.watermarks("accept", i, a.Known, a.Watermarks)
		c.generations(a.Generations)
	}
	for i := range m.Accepted {
		a := &m.Accepted[i]
		c.reason("accepted", i, a.Reason)
		c.generations(a.Generations)
		c.rounds("accepted", i, a.Ballot, a.Promised)
		c.watermarks("accepted", i, a.Held)
	}
	for i := range m.SnapshotChunks {
		c.chunk(i, &m.SnapshotChunks[i])
	}
	for i := range m.Layouts {
		c.layout(&m.Layouts[i])
	}
	return c.err
}

// checker checks the parts of a message about strict keys and keeps the first
// fault.
type checker struct{ fault }

// atMost checks the length of a list.
func (c *checker) atMost(what string, got, most int) {
	if got > most && c.err == nil {
		c.err = &SizeError{What: what, Got: got, Max: most}
	}
}

func (c *checker) generations(list []route.Generation) {
	c.atMost("generations", len(list), MaxStrictGenerations)
}

// reason checks a reason; kind and item name its message.
func (c *checker) reason(kind string, item int, r sticky.Reason) {
	if r > sticky.MaxReason {
		c.fail("%s %d for reason %d, want at most %d", kind, item, r, sticky.MaxReason)
	}
}

// watermarks checks lists of watermarks; kind and item name their message.
func (c *checker) watermarks(kind string, item int, lists ...sticky.Watermarks) {
	for _, list := range lists {
		c.atMost("watermarks of one "+kind, len(list), sticky.MaxWatermarks)
		for i := 1; i < len(list) && c.err == nil; i++ {
			if list[i].Window <= list[i-1].Window {
				c.fail("%s %d: watermarks are not ascending at %d", kind, item, i)
			}
		}
	}
}

// rounds checks ballots; kind and item name their message.
func (c *checker) rounds(kind string, item int, ballots ...sticky.Ballot) {
	for _, b := range ballots {
		if b.Round > sticky.MaxRound {
			c.fail("%s %d: ballot of round %d, want at most %d", kind, item, b.Round, uint64(sticky.MaxRound))
		}
	}
}

func (c *checker) chunk(item int, p *sticky.SnapshotChunk) {
	c.reason("snapshot chunk", item, p.Reason)
	c.atMost("records", len(p.Records), sticky.MaxRecords)
	c.generations(p.Generations)
	for i := 0; i < len(p.Records) && c.err == nil; i++ {
		r := &p.Records[i]
		if i > 0 && p.Records[i-1].Key.Compare(r.Key) >= 0 {
			c.fail("snapshot chunk: records are not ascending at %d", i)
		}
		c.rounds("record", i, r.Ballot)
		c.watermarks("record", i, r.Watermarks)
	}
}

func (c *checker) layout(l *route.Layout) {
	c.places(l.Regions, l.Pins)
	c.atMost("former layouts", len(l.Formers), route.MaxFormers)
	for i := 0; i < len(l.Formers) && c.err == nil; i++ {
		c.atMost("regions of a former layout", len(l.Formers[i].Regions), route.MaxRegions)
		for _, g := range l.Formers[i].Regions {
			c.names(g.Name)
			c.atMost("replicas of one region", len(g.Replicas), route.MaxReplicas)
			c.names(g.Replicas...)
		}
	}
	c.atMost("numbers of reserves", len(l.Reserves), route.MaxReserves)
	for i := 0; i < len(l.Reserves) && c.err == nil; i++ {
		c.atMost("new regions with reserves", len(l.Reserves[i].New), route.MaxRegions)
		c.names(l.Reserves[i].New...)
	}
	c.atMost("losses", len(l.Lost), route.MaxLost)
	for i := 0; i < len(l.Lost) && c.err == nil; i++ {
		c.places(l.Lost[i].Regions, l.Lost[i].Pins)
		if l.Lost[i].Region != "" {
			c.names(l.Lost[i].Region)
		}
	}
}

// places checks the regions and the pins of a layout.
func (c *checker) places(regions []route.Region, pins []route.Pin) {
	c.atMost("regions", len(regions), route.MaxRegions)
	c.atMost("pins", len(pins), route.MaxPins)
	for i := 0; i < len(regions) && c.err == nil; i++ {
		g := &regions[i]
		if i > 0 && g.Name <= regions[i-1].Name {
			c.fail("layout: regions are not ascending at %d", i)
		}
		c.names(g.Name)
		c.generations(g.Generations)
		c.atMost("replicas of one region", len(g.Replicas), route.MaxReplicas)
		c.names(g.Replicas...)
	}
	for i := 0; i < len(pins) && c.err == nil; i++ {
		if i > 0 && pins[i].Rule <= pins[i-1].Rule {
			c.fail("layout: pins are not ascending at %d", i)
		}
		c.names(pins[i].Region)
	}
}

// names checks that names ascend and that each is valid.
func (c *checker) names(names ...string) {
	for i := 0; i < len(names) && c.err == nil; i++ {
		switch name := names[i]; {
		case name == "" || len(name) > MaxStrictName || !utf8.ValidString(name):
			c.fail("layout: name %.260q, want 1 to %d bytes of UTF-8", name, MaxStrictName)
		case i > 0 && name <= names[i-1]:
			c.fail("layout: names are not ascending at %q", name)
		}
	}
}
