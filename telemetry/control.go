package telemetry

// ControlStats is a snapshot of the control log. The scrape only reads it and
// does not keep it.
type ControlStats struct {
	// Begun reports that the cluster has begun. Index and Recovery are those of
	// the version of the record.
	Begun    bool
	Index    uint64
	Recovery uint32
	// Format is that of the record, 0 without one.
	Format int
	// LeaderKnown reports that the daemon knows a leader, Votes and Leads that
	// it votes and leads, Open that its journal takes writes.
	LeaderKnown, Votes, Leads, Open bool
	// Events counts the events since the process started, by kind.
	Events map[string]uint64
	// Limits are those of the control log.
	Limits LimitsStats
}

// LimitsStats is a snapshot of the limits of the control log.
type LimitsStats struct {
	// Version is the index of the entry of the rules, InUse that of the record
	// whose limits decide calls.
	Version, InUse uint64
	// Pending reports that a change waits for regions, Unusable that the limits
	// cannot be used here.
	Pending, Unusable bool
	// Diverged counts the domains whose files differ and do not count, and
	// Overrides those of rules and keys.
	Diverged, Overrides int
}

func newControlCollector(read func() ControlStats) *collector {
	return newCollector(controlFamilies, func(w *writer) {
		s := read()
		flag := func(name string, is bool) {
			n := 0
			if is {
				n = 1
			}
			put(w, name, n)
		}
		flag("control_begun", s.Begun)
		put(w, "control_version", s.Index)
		put(w, "control_recovery", uint64(s.Recovery))
		put(w, "control_format", s.Format)
		flag("control_leader_known", s.LeaderKnown)
		flag("control_voter", s.Votes)
		flag("control_leads", s.Leads)
		flag("control_open", s.Open)
		w.reasons("control_events_total", s.Events)
		put(w, "limits_version", s.Limits.Version)
		put(w, "limits_in_use_version", s.Limits.InUse)
		flag("limits_pending", s.Limits.Pending)
		put(w, "limits_diverged", s.Limits.Diverged)
		flag("limits_unusable", s.Limits.Unusable)
		put(w, "limits_overrides", s.Limits.Overrides)
	})
}
