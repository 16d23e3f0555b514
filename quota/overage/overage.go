package overage

// Overage is an amount over the limit: in hits, and as a fraction of the limit.
type Overage struct {
	Hits  float64
	Ratio float64
}

// worse returns the greater overage, by ratio.
func worse(a, b Overage) Overage {
	if b.Ratio > a.Ratio {
		return b
	}
	return a
}

func over(hits float64, limit uint64) Overage { return Overage{hits, hits / float64(limit)} }

// predict returns the expected overage of the estimate gate alone if traffic of
// these rates, in hits per second, crosses the limit of a window: the hits that
// all regions but one admit while the view of that one ages. It is at most the
// demand beyond the limit, and at most the total that the other regions may
// admit. age returns the age of region i's view of region j in milliseconds.
func predict(limit uint64, rates []float64, demand float64, age func(i, j int) float64) Overage {
	l := float64(limit)
	if limit == 0 || demand <= l {
		return Overage{}
	}
	worst := worstView(len(rates), func(i, j int) float64 { return min(l, rates[j]*age(i, j)/1000) })
	return over(min(worst, demand-l, l*float64(len(rates)-1)), limit)
}

// worstView returns the greatest number of hits that one region is unaware of:
// the maximum over i of the sum over all other j.
func worstView(regions int, unknown func(i, j int) float64) float64 {
	worst := 0.0
	for i := range regions {
		sum := 0.0
		for j := range regions {
			if j != i {
				sum += unknown(i, j)
			}
		}
		worst = max(worst, sum)
	}
	return worst
}

// atCrossing returns the expected overage of one window of h that crossed its
// limit, with the traffic before the crossing and the ages that pick selects.
func (h *History) atCrossing(w *Window, pick func(Link) int64) Overage {
	_, demand := w.totals()
	rates := make([]float64, h.regions)
	for i := range w.Regions {
		rates[i] = float64(clip(w.Regions[i].AtCrossing)) / float64(w.AgeMs) * 1000
	}
	return predict(w.Limit, rates, float64(demand), func(i, j int) float64 { return float64(pick(h.link(i, j))) })
}

// worstNaive returns the worst case of the estimate gate alone with the traffic
// of the kept windows: all other regions at their worst moment at once. ages is
// the greatest view age in milliseconds.
func (h *History) worstNaive(r *Rule, ageMs int64) Overage {
	peaks := make([]float64, h.regions)
	for k := range h.count {
		w := h.at(k)
		for i := range peaks {
			peaks[i] = max(peaks[i], within(w, i, ageMs))
		}
	}
	worst := worstView(h.regions, func(_, j int) float64 { return min(peaks[j], float64(r.Limit)) })
	// Regions without a budget can reach no more.
	return over(min(worst, float64(r.Limit)*float64(len(r.Regions)-1)), r.Limit)
}

// within bounds the arrivals of region i of w in any interval of ageMs by its
// peak over w.AgeMs. Several such intervals cover a longer one, and no interval
// of a window holds more than the window.
func within(w *Window, i int, ageMs int64) float64 {
	covers := (max(ageMs, 1) + w.AgeMs - 1) / w.AgeMs
	return min(float64(w.Regions[i].PeakAge.Max)*float64(covers), float64(w.Regions[i].Demand()))
}
