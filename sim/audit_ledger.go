package sim

import (
	"math"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// ledger holds what all replicas counted, by key and label, for as long as a
// replica may know of it.
type ledger struct {
	byKey map[bookKey]*book
	all   []*book // in the order in which they came
	free  []*page
	// reserve is the end of the latest label that was dropped: of labels up to
	// there nothing can be said.
	reserve int64
	grew    int // pages since the last sweep
	// cramped says that replicas have room for fewer cells than by default.
	cramped bool
	// rescopes says that rules change, and scopes is what each key had first.
	rescopes bool
	scopes   map[crdt.Key]rules.Scope
	// closed is told of each page that is dropped, where it is not nil.
	closed func(*book, *totals)
	// could is the hits that strict windows that are over could have admitted,
	// missed those of them that they did not.
	could, missed uint64
}

// fewKeys is how many keys a daemon has room for where it is not to want it.
const fewKeys = 1_000

// sweepAfter is how many new pages call for a sweep of old ones.
const sweepAfter = 4_096

// keepPages is for how many ms beyond its end a page is kept.
const keepPages = 20_000

// bookKey names a counter, and whose it is where it is not everybody's.
type bookKey struct {
	key crdt.Key
	// domain is everybody for scope global, else the region, or the daemon
	// behind all regions.
	domain int
}

const everybody = -1

// book is what was counted of one key.
type book struct {
	bookKey
	rule    *rules.Rule // that charged it last
	pages   []*page     // labels ascending
	dropped []dropped   // what pages that are gone held

	// degraded says that a page was: what is counted over several labels is
	// then not known.
	degraded bool
	// rescoped says that the key was counted under other scopes too.
	rescoped bool

	bucket bucket // of a bucket
	spent  spent  // of its rights

	// Of a log: the window of the latest decision, and what was found of it.
	window int64
	totals totals
}

// page is one label of a book.
type page struct {
	window int64
	// end is from when on it matters to no replica, least from when on to
	// none of those who count by the shortest of the rules it was charged by.
	end, least   int64
	limit        uint64
	charged      uint64
	admitted     uint64
	free         uint64             // of those admitted, that no home had a say in: on_failure: allow
	asked        uint64             // hits that somebody wanted
	incarnations []incarnationCount // of those who charged it, in the order in which they came

	// degraded says that hits were counted elsewhere too, or told to nobody.
	degraded bool

	totals totals
}

// incarnationCount is what one writer counted on a page.
type incarnationCount struct {
	writer            int
	charged, admitted uint64
	watermarks        []mark
}

// mark is what was charged up to a time, that of a charge.
type mark struct {
	at  time.Duration
	sum uint64
}

// dropped is what one writer counted on pages that are gone.
type dropped struct {
	writer int
	last   time.Duration
	hits   uint64
}

func newLedger(cfg *Config) ledger {
	g := ledger{byKey: make(map[bookKey]*book), reserve: math.MinInt64, scopes: make(map[crdt.Key]rules.Scope)}
	g.cramped = cfg.Node.Gossip.WithDefaults().MaxCells < gossip.DefaultMaxCells || cfg.Node.MaxKeys < fewKeys
	for i := range cfg.Faults {
		g.rescopes = g.rescopes || cfg.Faults[i].Kind == NewRules
	}
	return g
}

// domainOf returns whose counter a limit's is at a daemon.
func domainOf(l *rules.Limit, d *Daemon) int {
	switch l.Scope {
	case rules.Region:
		return d.RegionIndex
	case rules.NodeLocal:
		return MaxRegions + d.Index
	}
	return everybody
}

// windowOfLimit returns the label that hits at now are counted under, its
// width, and for how long beyond its end it matters.
func windowOfLimit(l *rules.Limit, now int64) (window, width, carry int64) {
	width = l.Window()
	window = now - now%width
	if !quota.Of(l).Windowed() {
		return quota.Of(l).Shared(&quota.Cell{}, now)
	}
	if quota.Of(l).Weighted() {
		carry = width
	}
	return window, width, carry
}

// enter writes a decision down and fills in where.
func (g *ledger) enter(d *Decided, e *entry) {
	k := bookKey{d.Key, domainOf(d.Limit, d.Daemon)}
	b := g.byKey[k]
	if b == nil {
		b = &book{bookKey: k, bucket: bucket{at: d.At}}
		g.byKey[k] = b
		g.all = append(g.all, b)
	}
	b.rule = d.Rule
	if g.rescopes {
		g.rescope(b, d.Limit.Scope)
	}
	window, width, carry := windowOfLimit(d.Limit, e.now)
	p := b.page(window)
	if p == nil {
		b.degraded = b.degraded || g.loses(d.Status.Degraded)
		if e.charged == 0 && quota.Of(d.Limit).Stamped() {
			e.book = b // a page a refusal would be many
			return
		}
		p = g.open(b, window, window+width+carry)
	}
	p.limit = max(p.limit, capacity(d.Limit))
	p.end, p.least = max(p.end, window+width+carry), min(p.least, window+width+carry)
	p.degraded = p.degraded || g.loses(d.Status.Degraded)
	b.degraded = b.degraded || p.degraded
	e.book, e.page, e.before = b, p, p.charged
	p.free += e.free
	p.asked += d.Hits
	if e.charged > 0 {
		p.add(e.writer.index, d.At, e.charged, e.admitted)
	}
}

// loses reports whether what a limit counts at a decision is not known, because
// a replica had no room.
func (e *entry) loses(l *rules.Limit) bool {
	if quota.Of(l).Resets() && e.page != nil {
		return e.page.degraded
	}
	return e.book.degraded
}

// windowed reports whether the labels are windows, which decisions show.
func (b *book) windowed() bool {
	if b.rule == nil || b.rule.Limit == nil {
		return false
	}
	return quota.Of(b.rule.Limit).Windowed()
}

// rescope marks all books of a key that is counted under another scope than at
// first.
func (g *ledger) rescope(b *book, is rules.Scope) {
	was, ok := g.scopes[b.key]
	if !ok {
		g.scopes[b.key] = is
	}
	if !ok || was == is || b.rescoped {
		return
	}
	for _, o := range g.all {
		o.rescoped = o.rescoped || o.key == b.key
	}
}

// page returns the page of a label, nil for none.
func (b *book) page(window int64) *page {
	for i := len(b.pages) - 1; i >= max(0, len(b.pages)-4); i-- {
		if b.pages[i].window == window {
			return b.pages[i]
		}
	}
	if i, ok := b.search(window); ok {
		return b.pages[i]
	}
	return nil
}

func (b *book) search(window int64) (int, bool) {
	return slices.BinarySearchFunc(b.pages, window, func(p *page, window int64) int {
		return int(max(-1, min(1, p.window-window)))
	})
}

func (g *ledger) open(b *book, window, end int64) *page {
	g.grew++
	p := &page{}
	if n := len(g.free); n > 0 {
		p = g.free[n-1]
		g.free = g.free[:n-1]
	}
	*p = page{window: window, end: end, least: end, incarnations: p.incarnations[:0]}
	i, _ := b.search(window)
	b.pages = slices.Insert(b.pages, i, p)
	return p
}

func (p *page) add(writer int, at time.Duration, charged, admitted uint64) {
	p.charged += charged
	p.admitted += admitted
	s := p.incarnation(writer)
	if s == nil {
		n := len(p.incarnations)
		p.incarnations = slices.Grow(p.incarnations, 1)[:n+1]
		s = &p.incarnations[n]
		*s = incarnationCount{writer: writer, watermarks: s.watermarks[:0]}
	}
	s.charged += charged
	s.admitted += admitted
	s.watermarks = append(s.watermarks, mark{at, s.charged})
}

// incarnation returns what a writer counted on the page, nil for nothing.
func (p *page) incarnation(writer int) *incarnationCount {
	for i := range p.incarnations {
		if p.incarnations[i].writer == writer {
			return &p.incarnations[i]
		}
	}
	return nil
}

// before returns what was charged before a time.
func (s *incarnationCount) before(t time.Duration) uint64 {
	low, high := 0, len(s.watermarks)
	for low < high {
		if mid := (low + high) / 2; s.watermarks[mid].at < t {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == 0 {
		return 0
	}
	return s.watermarks[low-1].sum
}

// unseen returns what all but one writer charged after the times up to which
// that one knew them.
func (p *page) unseen(by int, known cuts) uint64 {
	n := uint64(0)
	for i := range p.incarnations {
		if s := &p.incarnations[i]; s.writer != by {
			n += s.charged - s.before(known[s.writer])
		}
	}
	return n
}

// loses reports whether an answer says that its hits were not counted under
// their key, or not told to others. One that says that its clock is off, or that
// it has no home, does not say whether there was room.
func (g *ledger) loses(d node.Degraded) bool {
	return d == node.KeysFull || d == node.CellsFull || (d == node.ClockOff || unreached(d)) && g.cramped
}

// sweep drops pages that matter to no replica any more.
func (g *ledger) sweep(slowest int64) {
	g.grew = 0
	kept := g.all[:0]
	for _, b := range g.all {
		n := 0
		for n < len(b.pages) && b.pages[n].end+keepPages < slowest {
			g.drop(b, b.pages[n])
			n++
		}
		b.pages = slices.Delete(b.pages, 0, n)
		if len(b.pages) == 0 {
			g.close(b, &b.totals)
			delete(g.byKey, b.bookKey)
		} else {
			kept = append(kept, b)
		}
	}
	clear(g.all[len(kept):])
	g.all = kept
}

func (g *ledger) close(b *book, t *totals) {
	if g.closed != nil {
		g.closed(b, t)
	}
}

func (g *ledger) drop(b *book, p *page) {
	could, missed := under(b, p)
	g.could, g.missed = g.could+could, g.missed+missed
	g.close(b, &p.totals)
	g.reserve = max(g.reserve, p.end)
	if b.rule != nil && b.rule.Limit != nil && quota.Of(b.rule.Limit).Drains() {
		for i := range p.incarnations {
			b.note(&p.incarnations[i])
		}
	}
	g.free = append(g.free, p)
}

// note remembers what a writer counted on a page that goes.
func (b *book) note(s *incarnationCount) {
	if len(s.watermarks) == 0 {
		return
	}
	last := s.watermarks[len(s.watermarks)-1].at
	for i := range b.dropped {
		if d := &b.dropped[i]; d.writer == s.writer {
			d.hits += s.charged
			d.last = max(d.last, last)
			return
		}
	}
	b.dropped = append(b.dropped, dropped{s.writer, last, s.charged})
}
