package epoch

// FormerPart is Part for an owner that continues its former runs: it counts
// their use in the window, and in those whose history counts in it, as its own.
// So it may use the windows of runs whose use it knows: see Resume. For another
// table than one of Resume it is Part.
//
// The sum over all participants stays bounded. What the table promised is in
// the record of Stop, and so is what others promised to it and remember. The
// restored table lacks only acknowledgements and extensions by others, without
// which its results are lower. So it gives no result that the stopped table
// could not have given later, and the use of all runs together is that of one
// run, for which the proof of Share holds.
func (t *Table) FormerPart(amount uint64, x, carry int64) (uint64, Reason) {
	lo, reason := t.lowestAfter(t.unknown, x, carry)
	if reason != ReasonEpoch {
		return 0, reason
	}
	return t.partOf(amount, lo, x), ReasonEpoch
}

// FormerDaemonShare is DaemonShare with the windows of FormerPart. It allocates
// nothing.
func FormerDaemonShare(region, local *Table, rule, total uint64, x, carry int64) (uint64, Reason) {
	share, lo, reason := regionShare(region, local, region.unknown, local.unknown, rule, total, x, carry)
	if reason != ReasonEpoch {
		return 0, reason
	}
	return local.partOf(share, lo, x), ReasonEpoch
}
