package overage

import "github.com/georld/rld/rules"

// Window is the traffic of one key of a rule in one window, in all regions. For
// a rule with many keys, add the windows of the busiest ones. Keys far below
// their limit are never denied, so a report on the busiest keys is the worst
// case of the rule.
type Window struct {
	StartMs int64  // windows are added in this order
	Limit   uint64 // in force in the window, 1 to MaxLimit
	Regions []Traffic
	Crossed bool // the demand of all regions exceeded the limit
	Gated   bool // the rights gate was in force, with this budget:
	Budget  rules.PPM

	// The lengths of the intervals of Traffic's figures, from two envelopes:
	// the greatest view age, and the greatest round trip of a request for
	// rights. 1 ms to a day.
	AgeMs, RTTMs int64
}

// Traffic is the part of one region in a window. Counts are hits.
type Traffic struct {
	Admitted       uint64
	DeniedRights   uint64 // by the rights gate alone
	DeniedEstimate uint64 // by the estimate gate
	Stranded       uint64 // part of DeniedRights: the estimate was below 0.9 of the limit

	PeakAge    Peaks  // arrivals in any interval of AgeMs; its Surge is not read
	SurgeRTT   uint64 // Surge of the intervals of RTTMs
	AtCrossing uint64 // arrivals in the last AgeMs before the limit was crossed

	Weight rules.PPM // in force. Sums to 1,000,000 over the regions; all 0: no rights were split
}

// Demand returns the hits that were offered to the region.
func (t *Traffic) Demand() uint64 {
	return clip(clip(t.Admitted) + clip(t.DeniedRights) + clip(t.DeniedEstimate))
}

// clip bounds a count so that a sum over regions cannot overflow.
func clip(n uint64) uint64 { return min(n, 1<<50) }

// Link is the measurement of one region by another, in milliseconds: the age of
// the view, and the round trip of a message. All fields are 0 without a
// measurement.
type Link struct {
	AgeP50Ms, AgeP99Ms, AgeMaxMs int64
	AgeNowMs                     int64
	RTTMs                        int64
}

// History holds the last windows of one rule and the state of its links, in
// bounded memory. It is not safe for concurrent use.
type History struct {
	regions int
	windows []Window // a ring
	next    int      // index of the next one
	count   int
	links   []Link // [viewer x regions + viewed]
}

// NewHistory returns an empty history of up to windows windows of 1 to
// MaxRegions regions. It needs about 100 bytes per window and region.
func NewHistory(regions, windows int) *History {
	return &History{regions: regions, windows: make([]Window, windows), links: make([]Link, regions*regions)}
}

// Add adds a window, and drops the oldest one if there is no room. It copies
// w.Regions. It returns false for a window that contradicts itself, or that
// starts before the latest one: this carries no information and is not added.
func (h *History) Add(w Window) bool {
	if !h.consistent(&w) {
		return false
	}
	slot := &h.windows[h.next]
	kept := append(slot.Regions[:0], w.Regions...)
	*slot = w
	slot.Regions = kept
	h.next = (h.next + 1) % len(h.windows)
	h.count = min(h.count+1, len(h.windows))
	return true
}

// consistent reports whether a window agrees with itself and with the latest
// one. Weights sum to the whole, or to 0 without rights.
func (h *History) consistent(w *Window) bool {
	weights := uint64(0)
	for i := range w.Regions {
		t := &w.Regions[i]
		weights += uint64(t.Weight)
		if t.Stranded > t.DeniedRights {
			return false
		}
	}
	switch {
	case len(w.Regions) != h.regions, w.Limit < 1, w.Limit > MaxLimit, weights != 0 && weights != whole,
		w.Gated && w.Budget > MaxRegions*whole,
		w.AgeMs < 1, w.AgeMs > maxEnvelopeMs, w.RTTMs < 1, w.RTTMs > maxEnvelopeMs:
		return false
	}
	return h.count == 0 || w.StartMs >= h.at(h.count-1).StartMs
}

// maxLinkMs is the longest time of a link: 34 years.
const maxLinkMs = 1 << 40

// SetLink sets the present measurement of region viewed by region viewer,
// another one. Times are bounded by 0 and maxLinkMs.
func (h *History) SetLink(viewer, viewed int, l Link) {
	for _, ms := range []*int64{&l.AgeP50Ms, &l.AgeP99Ms, &l.AgeMaxMs, &l.AgeNowMs, &l.RTTMs} {
		*ms = min(max(*ms, 0), maxLinkMs)
	}
	h.links[viewer*h.regions+viewed] = l
}

// at returns window number i, counted from the oldest.
func (h *History) at(i int) *Window {
	return &h.windows[(h.next-h.count+i+len(h.windows))%len(h.windows)]
}

// link returns the measurement of viewed by viewer.
func (h *History) link(viewer, viewed int) Link { return h.links[viewer*h.regions+viewed] }

// longest returns the maximum of one of the times over all links.
func (h *History) longest(of func(Link) int64) int64 {
	ms := int64(0)
	for _, l := range h.links {
		ms = max(ms, of(l))
	}
	return ms
}

// totals returns the admitted hits and the demand of all regions.
func (w *Window) totals() (admitted, demand uint64) {
	for i := range w.Regions {
		admitted += clip(w.Regions[i].Admitted)
		demand += w.Regions[i].Demand()
	}
	return admitted, demand
}
